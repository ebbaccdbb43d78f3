// SPDX-License-Identifier: MIT

/// NeighborLists: the undirected adjacency of a graph; each rank has a slice of the nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// The neighbors, in both directions, of the nodes of this rank's slice of PartitionBook::even(num_nodes,
/// ranks). A neighbor is listed once per edge; self loops are left out. Neighbors have compact indices: node
/// slices.begin(rank) + i of this slice has index i, and all other nodes follow, sorted by id.
struct NeighborLists {
  /// A reader of a node of this slice. The value of the node is at `position` among the values that this rank
  /// sends to `rank`.
  struct Copy {
    std::int32_t rank;
    std::uint32_t position;
  };

  Array<Index> offsets{0};             ///< node i has neighbors[offsets[i]] ... neighbors[offsets[i + 1] - 1]
  Array<std::uint32_t> neighbors;      ///< compact indices
  Array<std::uint32_t> in_degrees;     ///< including self loops
  Array<std::uint32_t> remote_ids;     ///< original ids of the compact indices from num_nodes() on
  Index num_values = 0;                ///< number of compact indices
  Array<Index> copy_offsets{0};        ///< node i has copies[copy_offsets[i]] ...
  Array<Copy> copies;                  ///< ordered by rank
  std::vector<Index> first_of_sender;  ///< compact index of the first value received from each rank

  [[nodiscard]] Index num_nodes() const noexcept { return static_cast<Index>(in_degrees.size()); }
  [[nodiscard]] Index degree(Index i) const noexcept { return offsets[i + 1] - offsets[i]; }
  /// Returns the original id of a compact index, where `first` is the id of node 0.
  [[nodiscard]] Index id_of(std::uint32_t number, Index first) const noexcept {
    return number < in_degrees.size() ? first + number : remote_ids[number - in_degrees.size()];
  }
  [[nodiscard]] std::span<const std::uint32_t> of(Index i) const noexcept {
    return std::span(neighbors).subspan(offsets[i], static_cast<std::size_t>(degree(i)));
  }
};

/// Collective. Builds the lists; `edges` is this rank's share in original ids. The edges are sent twice, in
/// chunks: once to count and once to fill the lists. Memory: 4 bytes per neighbor, about 20 per node of the
/// slice, 8 per copy and 4 per remote id; while the lists are built, at most about 32 more per remote id.
/// Throws InputError on every rank for 2^32 nodes or more.
NeighborLists gather_neighbors(const Communicator& comm, Index num_nodes, const EdgeList& edges);

}}  // namespace sar
