/// The errors that GraphOptions::halo_error_feedback keeps from one training step to the next, in files
/// beside a checkpoint, one for each rank. For checkpoint.cpp only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Of each graph, by the number of the operation in its step.
using HaloErrors = std::vector<std::map<std::uint64_t, Tensor>>;

/// A text, the same on every rank, that is another one where errors belong to other rows: for other graphs,
/// for another number of ranks, and where any rank has other nodes or another halo. Empty for no graphs.
/// Collective. Throws InputError for a graph on another number of ranks than those of `comm`.
[[nodiscard]] std::string describe_halos(const Communicator& comm, std::span<const GraphShardManager> graphs);

// Each rank for itself, about its file in `directory`. They throw InputError.
void write_halo_errors(const std::string& directory, int rank, std::span<const GraphShardManager> graphs);
/// Of graphs with the same describe_halos() as then.
[[nodiscard]] HaloErrors read_halo_errors(const std::string& directory, int rank,
                                          std::span<const GraphShardManager> graphs);

/// `errors`: of each graph; empty: none of any.
void set_halo_errors(std::span<const GraphShardManager> graphs, HaloErrors errors) noexcept;

}  // namespace sar
