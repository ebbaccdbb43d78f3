// SPDX-License-Identifier: MIT

/// EdgeSet: a distributed set of edges that any rank can query.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// A rank stores the ends of the edges into its nodes, 16 bytes per edge. Copies share nothing.
///
/// @code
/// const EdgeSet edges(comm, data.book, data.edges);
/// const std::vector<Index> src{0, 1}, dst{299, 0};
/// const Array<std::uint8_t> are_edges = edges.contains(src, dst);
/// @endcode
class EdgeSet {
 public:
  /// Collective. `edges`: the in-edges of this rank's destinations, in any order; `dst_book`: the owners of
  /// the destinations. Throws the same exception on every rank: InputError for a destination that the rank
  /// does not own or a book with another number of ranks, ShapeError if lengths differ.
  EdgeSet(const Communicator& comm, const PartitionBook& dst_book, const EdgeList& edges);

  /// Returns, for each pair of global ids, 1 if it is an edge and 0 otherwise. Pairs may repeat. Collective:
  /// a pair costs 17 bytes of communication with the owner of its destination. Throws the same exception on
  /// every rank: ShapeError if lengths differ, InputError for a destination that does not exist.
  [[nodiscard]] Array<std::uint8_t> contains(std::span<const Index> src, std::span<const Index> dst) const;

 private:
  struct Edge {
    Index dst, src;
    auto operator<=>(const Edge&) const = default;
  };

  Communicator comm_;
  std::optional<PartitionBook> dst_book_;  // set inside agree()
  Array<Edge> edges_;                      // sorted
};

}}  // namespace sar
