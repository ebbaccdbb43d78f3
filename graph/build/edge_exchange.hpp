/// Bringing every edge to the worker that owns its destination, and the transforms of an edge list on the
/// way.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/shard/edge_list.hpp>

namespace sar {

/// Sends this rank's edges (partitioned ids) to the owners of their destinations; what arrives here is
/// appended to `mine`, in no particular order. `weighted`, the same on every rank, says whether edges have
/// weights. Edges travel in blocks, and each column of `edges` is freed as soon as it has been sent: two
/// whole lists are never held, and besides them 4 bytes per edge and some tens of MB. Collective.
void exchange_edges(const Communicator& comm, const PartitionBook& book, EdgeList&& edges, bool weighted,
                    EdgeList& mine);

/// Appends v -> v with weight 1 for each node of [first_node, first_node + original_ids.size()). The id of a
/// loop is first_id + the node's original id. Local.
void append_self_loops(Index first_node, const Array<Index>& original_ids, Index first_id, bool weighted,
                       EdgeList& edges);

/// The positions of the edges by destination, source, id. The destinations lie in [dst_begin, dst_end).
/// Local.
Array<Index> edge_order(Index dst_begin, Index dst_end, const EdgeList& edges);

/// Orders the list by destination, source, id. The destinations lie in [dst_begin, dst_end). Needs 16 bytes
/// an edge besides the list. Local.
void sort_edges(Index dst_begin, Index dst_end, EdgeList& edges);

/// The same, and of edges with the same source and destination only the one with the smallest id stays.
/// Local.
void drop_duplicates(Index dst_begin, Index dst_end, EdgeList& edges);

}  // namespace sar
