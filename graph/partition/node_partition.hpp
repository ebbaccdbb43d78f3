// SPDX-License-Identifier: MIT

/// NodePartition: the bijection between original ids and global ids, in which each part is a contiguous
/// range.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// The mapping is a closed formula without memory per node. The exception is an explicit assignment, which is
/// distributed over the ranks of a communicator.
class NodePartition {
 public:
  static NodePartition contiguous(Index num_nodes, int parts);
  /// The bijection depends on the number of nodes and the seed, not on the number of parts.
  static NodePartition random(Index num_nodes, int parts, std::uint64_t seed);
  /// part_of[i] is the part of the original node slices.begin(rank) + i, where
  ///
  ///     slices = PartitionBook::even(nodes of all ranks, comm.size())
  /// The nodes of a part are ordered by original id. A part may be empty. A rank stores 8 bytes per node of
  /// its slice and 8 per node of its parts, which are PartitionBook::even(parts, comm.size()). Throws
  /// InputError for a part outside [0, parts) and if the length on a rank is not that of its slice.
  /// Collective.
  static NodePartition from_assignment(const Communicator& comm, std::span<const std::int32_t> part_of,
                                       int parts);

  [[nodiscard]] const PartitionBook& book() const noexcept { return book_; }
  /// Local. Returns the global id of a node. Throws InputError for a node outside this rank's slice of an
  /// explicit assignment.
  [[nodiscard]] Index to_partitioned(Index original) const;
  /// Collective. Replaces original ids by global ids. For an explicit assignment, a rank looks up each
  /// distinct node once (replace_ids).
  void to_partitioned(std::span<Index> nodes) const;
  /// Local. Returns the original ids of the nodes of a part, in the order of their global ids. Throws
  /// InputError for a part of another rank of an explicit assignment.
  [[nodiscard]] Array<Index> original_ids(int part) const;

 private:
  explicit NodePartition(PartitionBook book) : book_(std::move(book)) {}

  PartitionBook book_;
  std::optional<KeyedBijection> bijection_;
  struct Explicit {
    Communicator comm;
    PartitionBook slices;       // of the original ids
    PartitionBook parts;        // of the parts
    Array<Index> of_slice;      // global ids of this rank's slice
    Array<Index> original_ids;  // of the nodes of this rank's parts
  };
  std::optional<Explicit> explicit_;
};

}}  // namespace sar
