// SPDX-License-Identifier: MIT

/// Partitioning methods and their options.
#pragma once

#include <sar/config.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

enum class PartitionMethod {
  contiguous,  ///< equal ranges in the order of the dataset
  random,      ///< equal ranges of a keyed bijection of the ids; nearly every node is in every halo
  metis,       ///< few cut edges (METIS_PartGraphKway); rank 0 holds the whole graph
  ldg,         ///< fewer cut edges than random, by streaming; the graph stays distributed
  scotch,      ///< few cut edges (PT-Scotch, multilevel); the graph stays distributed
  automatic,   ///< "auto": chosen_method() for the number of edges
};

[[nodiscard]] const char* to_string(PartitionMethod method) noexcept;
/// Returns whether the library was built with METIS.
[[nodiscard]] bool has_metis() noexcept;
/// Returns whether the library was built with PT-Scotch.
[[nodiscard]] bool has_scotch() noexcept;

/// The most edges for which `automatic` gathers a graph on one rank.
constexpr std::int64_t most_gathered_edges = 100'000'000;

/// Returns `method`, and for `automatic` the method with the fewest cut edges that suits a graph: metis for
/// up to `most_gathered` edges, else scotch. Without METIS it is scotch, too, and without PT-Scotch ldg.
[[nodiscard]] PartitionMethod chosen_method(PartitionMethod method, std::int64_t num_edges,
                                            std::int64_t most_gathered = most_gathered_edges) noexcept;

struct AssignmentOptions {
  int parts = 1;
  std::uint64_t seed = 0;  ///< random, metis, scotch
  /// For the homogeneous form of a graph with several node types: the nodes of type t start at
  /// first_of_type[t] and end before first_of_type[t + 1], and every method balances the nodes of each type.
  /// Empty: one type, which assign_nodes() writes as {0, number of nodes} for the methods.
  std::span<const std::int64_t> first_of_type = {};
  /// metis, ldg, scotch: also balance the number of in-edges.
  bool balance_edges = true;
  /// metis, ldg, scotch: also balance the number of training nodes. The mask has one byte per node of this
  /// rank's slice; if it is empty on every rank, training nodes are not balanced.
  std::span<const std::uint8_t> train_mask = {};
  /// ldg: how often the nodes are streamed, each time starting from the previous assignment.
  int passes = 5;
};

}}  // namespace sar
