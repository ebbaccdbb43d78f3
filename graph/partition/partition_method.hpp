/// The methods by which nodes get their parts, and their options.
#pragma once

#include <sar/config.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

enum class PartitionMethod {
  contiguous,  ///< even ranges of the dataset's order
  random,      ///< even ranges of a keyed bijection of the ids; nearly every node is in every halo
  metis,       ///< few cut edges (METIS_PartGraphKway); rank 0 holds the whole graph
  ldg,         ///< fewer cut edges than random, by streaming; no rank holds more than its share of the graph
  scotch,      ///< few cut edges (PT-Scotch, multilevel); no rank holds more than its share of the graph
};

[[nodiscard]] const char* to_string(PartitionMethod method) noexcept;
/// Whether this copy of the library was built with METIS.
[[nodiscard]] bool has_metis() noexcept;
/// Whether it was built with PT-Scotch.
[[nodiscard]] bool has_scotch() noexcept;

struct AssignmentOptions {
  int parts = 1;
  std::uint64_t seed = 0;  ///< random, metis, scotch
  /// Of a graph of several types in its homogeneous form: the nodes of type t are first_of_type[t] to
  /// first_of_type[t + 1] - 1, and the parts get about the same number of nodes of each type, with every
  /// method. Empty: one type.
  std::span<const std::int64_t> first_of_type = {};
  /// metis, ldg, scotch: the parts also get about the same number of in-edges.
  bool balance_edges = true;
  /// metis, ldg, scotch: the parts also get about the same number of training nodes. The mask has one byte
  /// for each node of this rank's slice; it is empty on every rank when training nodes need no balance.
  std::span<const std::uint8_t> train_mask = {};
  /// ldg: how often the nodes are streamed, each time with the parts of the time before.
  int passes = 5;
};

}  // namespace sar
