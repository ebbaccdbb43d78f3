// SPDX-License-Identifier: MIT

/// Undirected neighbors, and Linear Deterministic Greedy partitioning on all ranks at once.
///
/// A node v is assigned to the part p, among the parts where it fits, with the largest score (Stanton and
/// Kliot, KDD 2012)
///
///     (neighbors of v in p) * (1 - l_p),     l_p = max of load / capacity over the loads that v adds to
/// and to the least loaded part if no such part contains a neighbor. The nodes are streamed several times,
/// each time starting from the previous assignment (restreaming: Nishimura and Ugander, KDD 2013), until
/// hardly any node moves.
///
/// Unlike in that paper, a pass does not start with empty loads: a node is removed from its part and
/// assigned again. Each rank streams its slice in the order of the ids and knows only its own moves until
/// the next exchange. The ranks exchange their moves 128 times per pass, or 4 times per part if that is
/// more. The first batches of a pass have 1, 2, 4 ... nodes, so that the ranks do not start the same part
/// in different places.
///
/// If the ranks together overfill a part, each rank takes back its share of the surplus, last moves first: a
/// node returns to its previous part or, in the first pass, waits for the next exchange. The capacities, 1.05
/// of the average, therefore hold for any number of ranks and parts, except if a single node exceeds the
/// remaining room, and for the few nodes that still wait after four exchanges at the end of the first pass.
///
/// A rank does not predict the moves of other ranks. The prediction that all ranks move alike would count a
/// hub once per rank, and no part would have room for it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

// NeighborLists: the undirected adjacency of a graph; each rank has a slice of the nodes.

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

/// Collective. Returns the part of each node of this rank's slice, as in assign_nodes; parts may be empty.
/// Single-threaded. The result depends on the number of ranks. Memory: NeighborLists and 4 bytes for each
/// of its values. Throws InputError for 2^32 nodes or more.
Array<std::int32_t> ldg_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                   const AssignmentOptions& options);

/// Collective. Rebalances an assignment: nodes of parts above their capacities move as in ldg_assignment,
/// in at most options.passes passes; all other nodes keep their part.
Array<std::int32_t> balance_by_ldg(const Communicator& comm, Index num_nodes, NeighborLists lists,
                                   const AssignmentOptions& options, std::span<const std::int32_t> part_of);
}}  // namespace sar
