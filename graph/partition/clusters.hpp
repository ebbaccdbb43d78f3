// SPDX-License-Identifier: MIT

/// Small clusters of nodes with few edges between them, for mini-batches of clusters.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Options of cluster_nodes(); the same on every rank.
struct ClusterOptions {
  Index clusters = 1;
  /// metis and ldg need the whole graph on rank 0; contiguous and random do not. automatic: metis, or ldg in
  /// a library without it.
  PartitionMethod method = PartitionMethod::automatic;
  std::uint64_t seed = 0;
};

/// Collective. Divides the nodes of a distributed graph into clusters of about equal numbers of nodes and
/// returns the cluster of each node of this rank. `original_ids`: distinct numbers of these nodes, which
/// order them. `edges`: their in-edges, in global ids. The clusters depend neither on the number of ranks nor
/// on the partition. Throws InputError, the same on every rank, for fewer clusters than one or more than
/// nodes, the method scotch, whose result depends on the ranks, an end of an edge that does not exist, and as
/// assign_nodes().
[[nodiscard]] Array<std::int32_t> cluster_nodes(const Communicator& comm, const PartitionBook& book,
                                                std::span<const Index> original_ids, const EdgeList& edges,
                                                const ClusterOptions& options);

}}  // namespace sar
