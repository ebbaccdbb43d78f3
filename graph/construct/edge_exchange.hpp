// SPDX-License-Identifier: MIT

/// Global ids of the ends of edges, edges redistributed to the owners of their destinations, edge lists
/// transformed and sorted.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/construct/host_edges.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

// Translates the host ids of the ends of edges to global ids.

inline constexpr Index edges_per_task = Index{1} << 14;  ///< in parallel loops over a host's edges

/// Returns the ids of the nodes that this rank owns.
inline std::span<const Index> own_nodes(std::span<const Index> nodes) {
  return nodes;
}
inline std::span<const Index> own_nodes(const LocalToGlobal& nodes) {
  return nodes.global_ids.first(static_cast<std::size_t>(nodes.num_owned));
}

/// The set of nodes that sources, destinations or both belong to. `Nodes` is a span of host ids or
/// LocalToGlobal.
template <class Nodes>
struct HostNodes {
  const Nodes& nodes;
  const char* what;  ///< "node", "source" or "destination", for error messages
  PartitionBook book;
};

/// One end of all edges of this rank: the host ids, and the global ids that find_ends writes.
template <class Id>
struct EndColumn {
  std::span<const Id> given;
  Array<Index>& global;
  const char* goes;  ///< "comes from" or "goes to", for error messages
};

/// Collective. Writes the global ids of ends that belong to the same set of nodes. Throws InputError on
/// every rank for an end that no rank gives, and for an index outside the local numbering.
template <class Nodes, class Id>
void find_ends(const Communicator& comm, const HostNodes<Nodes>& nodes, const HostEdges<Id>& edges,
               std::span<const EndColumn<Id>> columns);

/// Collective. Sends this rank's edges (global ids) to the owners of their destinations, and appends the
/// received edges to `mine` in no particular order. `weighted`, the same on every rank, tells whether edges
/// have weights. Each column of `edges` is freed once it is sent, so that memory never holds two whole
/// lists; other memory is 4 bytes per edge and a few chunks.
void exchange_edges(const Communicator& comm, const PartitionBook& book, EdgeList&& edges, bool weighted,
                    EdgeList& mine);

/// Local. Appends the reverse of each edge, with the same weight. Its id is next_id plus the edge's id.
void append_reverse(Index next_id, EdgeList& edges);

/// Local. Appends a self loop v -> v with weight 1 for each node of [first_node, first_node +
/// original_ids.size()). The id of the loop is first_id plus the node's original id.
void append_self_loops(Index first_node, const Array<Index>& original_ids, Index first_id, bool weighted,
                       EdgeList& edges);

/// Local. Undoes append_self_loops for the nodes that had a self loop: of these, the one with the largest
/// id stays, as in PyG's add_remaining_self_loops. Sorts the list in the order of edge_order.
void keep_remaining_self_loops(Index dst_begin, Index dst_end, EdgeList& edges);

/// Local. Returns the positions of the edges sorted by destination, source and id. The destinations are in
/// [dst_begin, dst_end).
Array<Index> edge_order(Index dst_begin, Index dst_end, const EdgeList& edges);

/// Local. Sorts the list in the order of edge_order. Needs 16 bytes per edge besides the list.
void sort_edges(Index dst_begin, Index dst_end, EdgeList& edges);

/// Local. Sorts the list and keeps, of edges with the same source and destination, only the one with the
/// smallest id.
void drop_duplicates(Index dst_begin, Index dst_end, EdgeList& edges);
}}  // namespace sar
