/// NeighborLists: the graph without directions; each rank has a slice of the nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// The neighbours of the nodes of this rank's slice of PartitionBook::even(num_nodes, ranks), in both
/// directions. A neighbour is listed once for each edge; self loops are left out. Neighbours have compact
/// numbers: node slices.begin(rank) + i of this slice is i, and the others follow by id.
struct NeighborLists {
  /// A reader of a node of this slice: the node's value is number `position` of those that this rank sends to
  /// `rank`.
  struct Copy {
    std::int32_t rank;
    std::uint32_t position;
  };

  Array<Index> offsets{0};             ///< node i has neighbors[offsets[i]] ... neighbors[offsets[i + 1] - 1]
  Array<std::uint32_t> neighbors;      ///< compact numbers
  Array<std::uint32_t> in_degrees;     ///< they count self loops
  Array<std::uint32_t> remote_ids;     ///< of the compact numbers from num_nodes() on
  Index num_values = 0;                ///< how many compact numbers there are
  Array<Index> copy_offsets{0};        ///< node i has copies[copy_offsets[i]] ...
  Array<Copy> copies;                  ///< ordered by rank
  std::vector<Index> first_of_sender;  ///< compact number of value 0 of each rank

  [[nodiscard]] Index num_nodes() const noexcept { return static_cast<Index>(in_degrees.size()); }
  [[nodiscard]] Index degree(Index i) const noexcept { return offsets[i + 1] - offsets[i]; }
  /// The original id of a compact number, where `first` is that of node 0.
  [[nodiscard]] Index id_of(std::uint32_t number, Index first) const noexcept {
    return number < in_degrees.size() ? first + number : remote_ids[number - in_degrees.size()];
  }
  [[nodiscard]] std::span<const std::uint32_t> of(Index i) const noexcept {
    return std::span(neighbors).subspan(offsets[i], static_cast<std::size_t>(degree(i)));
  }
};

/// `edges` is this rank's share, in original ids. The edges travel twice, in chunks: to be counted and to be
/// written. Memory: 4 bytes for each neighbour, about 20 for each node of the slice, 8 for each copy and 4 for
/// each remote id; while the lists are built, at most about 32 more for each remote id. Collective. Throws
/// InputError, the same on every rank, for 2^32 nodes or more.
NeighborLists gather_neighbors(const Communicator& comm, Index num_nodes, const EdgeList& edges);

}  // namespace sar
