/// EdgeSet: which pairs of nodes are edges, asked from any rank.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

namespace sar::inline SAR_PRECISION {

/// A rank keeps the ends of the edges that reach its nodes, 16 bytes an edge. Copies share nothing.
class EdgeSet {
 public:
  /// `edges`: those of this rank's destinations, as a graph takes them; `dst_book` says who owns which
  /// destination. Collective. Throws, the same on every rank, InputError for a destination that the rank does
  /// not own and for a book that is not of as many ranks as the communicator, ShapeError when lengths differ.
  EdgeSet(const Communicator& comm, const PartitionBook& dst_book, const EdgeList& edges);

  /// For each pair of global ids whether it is an edge: 1 or 0. A pair may occur again; 17 bytes of it travel
  /// to the owner of its destination and back. Collective. Throws, the same on every rank, ShapeError when
  /// lengths differ, InputError for a destination that does not exist.
  [[nodiscard]] Array<std::uint8_t> contains(std::span<const Index> src, std::span<const Index> dst) const;

 private:
  struct Edge {
    Index dst, src;
    auto operator<=>(const Edge&) const = default;
  };

  Communicator comm_;
  std::optional<PartitionBook> dst_book_;  // made where all ranks learn of a failure
  Array<Edge> edges_;                      // sorted
};

}  // namespace sar
