/// NodePartition: the map between original ids and global ids, in which each part is a contiguous range.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/keyed_bijection.hpp>
#include <sar/core/memory.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace sar::inline SAR_PRECISION {

/// The map is a closed form without memory per node, except for an explicit assignment, which is spread over
/// the ranks of a communicator.
class NodePartition {
 public:
  static NodePartition contiguous(Index num_nodes, int parts);
  /// The bijection depends on the number of nodes and the seed, not on the number of parts.
  static NodePartition random(Index num_nodes, int parts, std::uint64_t seed);
  /// part_of[i] is the part of original node slices.begin(rank) + i, where
  ///     slices = PartitionBook::even(nodes of all ranks, comm.size()).
  /// The nodes of a part are ordered by original id, and a part may be empty. A rank keeps 8 bytes for each
  /// node of its slice, and 8 for each node of its parts; those are PartitionBook::even(parts, comm.size()).
  /// Collective. Throws InputError for a part outside [0, parts), and when a rank has not the length of its
  /// slice.
  static NodePartition from_assignment(const Communicator& comm, std::span<const std::int32_t> part_of,
                                       int parts);
  /// The same of this rank alone: part_of has all nodes of the graph, and this rank has all parts. Local.
  static NodePartition from_assignment(std::span<const std::int32_t> part_of, int parts);

  [[nodiscard]] const PartitionBook& book() const noexcept { return book_; }
  /// The global id of a node. Local. Throws InputError for a node outside of this rank's slice of an explicit
  /// assignment.
  [[nodiscard]] Index to_partitioned(Index original) const;
  /// Replaces the original ids of nodes by their global ids. Of an explicit assignment, a rank asks for each
  /// distinct node once (replace_ids). Collective.
  void to_partitioned(std::span<Index> nodes) const;
  /// The original ids of the nodes of a part, in the order of their global ids. Local. Throws InputError for
  /// a part of another rank of an explicit assignment.
  [[nodiscard]] Array<Index> original_ids(int part) const;

 private:
  explicit NodePartition(PartitionBook book) : book_(std::move(book)) {}

  PartitionBook book_;
  std::optional<KeyedBijection> bijection_;
  struct Explicit {
    Communicator comm;
    PartitionBook slices;       // of the original ids
    PartitionBook parts;        // of the parts
    Array<Index> of_slice;      // the global ids of this rank's slice
    Array<Index> original_ids;  // of the nodes of this rank's parts
  };
  std::optional<Explicit> explicit_;
};

}  // namespace sar
