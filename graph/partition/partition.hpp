/// Partitioning: how the nodes of a dataset (original ids) become the contiguous ranges of the workers
/// (partitioned ids, PartitionBook).
///
/// Room graph/partition: The choice of the part that each node belongs to, and of the order of the nodes in a
/// part.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/bijection.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sar {

enum class PartitionMethod {
  contiguous,  ///< the dataset's order, cut into even ranges
  random,      ///< a keyed bijection of the ids, cut into even ranges; nearly every node is in every halo
  metis,       ///< few cut edges (METIS_PartGraphKway); the whole graph passes through rank 0's memory
  ldg,         ///< fewer cut edges than random, by streaming; no rank holds more than its share of the graph
};

[[nodiscard]] const char* to_string(PartitionMethod method) noexcept;
/// Was METIS found when this copy of the library was configured?
[[nodiscard]] bool has_metis() noexcept;

/// The map between the two numberings. Closed form and without memory per node, except for an explicit
/// assignment.
class NodePartition {
 public:
  static NodePartition contiguous(Index num_nodes, int parts);
  /// The bijection depends on the number of nodes and the seed, not on the number of parts.
  static NodePartition random(Index num_nodes, int parts, std::uint64_t seed);
  /// part_of[v] is the part of original node v; nodes of one part are ordered by original id, parts may be
  /// empty. Holds 8 bytes for each node of the graph. Throws InputError for a part outside [0, parts).
  static NodePartition from_assignment(std::span<const std::int32_t> part_of, int parts);

  [[nodiscard]] const PartitionBook& book() const noexcept { return book_; }
  [[nodiscard]] Index to_partitioned(Index original) const noexcept;
  /// Original ids of the nodes of a part, in the order of their partitioned ids.
  [[nodiscard]] Array<Index> original_ids(int part) const;

 private:
  explicit NodePartition(PartitionBook book) : book_(std::move(book)) {}

  PartitionBook book_;
  std::optional<KeyedBijection> bijection_;
  Array<Index> table_;  // original -> partitioned
};

/// Partitions a graph over the workers of `comm`. `edges` is this rank's share of the edges in original ids;
/// only metis and ldg look at them, and balance nodes and in-edges (assignment.hpp). The result is the same
/// on every rank. Collective. Throws InputError for metis when the library was built without it, or when the
/// graph is too large for its indices.
NodePartition partition_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                              PartitionMethod method, std::uint64_t seed);

}  // namespace sar
