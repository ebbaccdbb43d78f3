/// Every edge goes to the rank that owns its destination, and edge lists are transformed and sorted.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/shard/edge_list.hpp>

namespace sar::inline SAR_PRECISION {

/// Sends this rank's edges (global ids) to the owners of their destinations. The edges that arrive here are
/// appended to `mine`, in no particular order. `weighted`, the same on every rank, says whether edges have
/// weights. Each column of `edges` is freed as soon as it has been sent, so that memory never holds two whole
/// lists; besides the lists it holds 4 bytes per edge and a few chunks. Collective.
void exchange_edges(const Communicator& comm, const PartitionBook& book, EdgeList&& edges, bool weighted,
                    EdgeList& mine);

/// Appends v -> v with weight 1 for each node of [first_node, first_node + original_ids.size()). The id of a
/// loop is first_id + the node's original id. Local.
void append_self_loops(Index first_node, const Array<Index>& original_ids, Index first_id, bool weighted,
                       EdgeList& edges);

/// The positions of the edges by destination, source, id. The destinations lie in [dst_begin, dst_end).
/// Local.
Array<Index> edge_order(Index dst_begin, Index dst_end, const EdgeList& edges);

/// Orders the list as edge_order says. Needs 16 bytes an edge besides the list. Local.
void sort_edges(Index dst_begin, Index dst_end, EdgeList& edges);

/// The same; of edges with the same source and destination, only the one with the smallest id stays. Local.
void drop_duplicates(Index dst_begin, Index dst_end, EdgeList& edges);

}  // namespace sar
