/// NodePartition: the map between original ids and global ids, in which each part is a contiguous range.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/keyed_bijection.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sar::inline SAR_PRECISION {

/// The map is a closed form without memory per node, except for an explicit assignment.
class NodePartition {
 public:
  static NodePartition contiguous(Index num_nodes, int parts);
  /// The bijection depends on the number of nodes and the seed, not on the number of parts.
  static NodePartition random(Index num_nodes, int parts, std::uint64_t seed);
  /// part_of[v] is the part of original node v. The nodes of a part are ordered by original id, and a part
  /// may be empty. Holds 8 bytes for each node of the graph. Throws InputError for a part outside [0, parts).
  static NodePartition from_assignment(std::span<const std::int32_t> part_of, int parts);

  [[nodiscard]] const PartitionBook& book() const noexcept { return book_; }
  /// The global id of a node.
  [[nodiscard]] Index to_partitioned(Index original) const noexcept;
  /// The original ids of the nodes of a part, in the order of their global ids.
  [[nodiscard]] Array<Index> original_ids(int part) const;

 private:
  explicit NodePartition(PartitionBook book) : book_(std::move(book)) {}

  PartitionBook book_;
  std::optional<KeyedBijection> bijection_;
  Array<Index> table_;  // original -> global
};

}  // namespace sar
