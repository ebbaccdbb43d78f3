// SPDX-License-Identifier: MIT

/// Redistributes edges to the owners of their destinations, and transforms and sorts edge lists.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/shard/edge_list.hpp>

namespace sar { inline namespace SAR_PRECISION {

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
