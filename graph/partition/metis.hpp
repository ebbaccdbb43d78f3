/// METIS (Karypis and Kumar, SIAM J. Sci. Comput. 1998) on a graph that is spread over the workers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar {

/// The part of each node of this rank's slice, as assign_nodes: METIS_PartGraphKway into options.parts parts
/// of the undirected simple graph that underlies the edges (each rank's share, original ids). With
/// balance_edges and train_mask, nodes, in-edges and training nodes are constraints of one multi-constraint
/// problem (Karypis and Kumar, SC 1998). Parts may be empty. Rank 0 gathers the edges and needs about 8 bytes
/// for each edge and 8 for each undirected one, and 4 for each node and constraint. Collective. Throws
/// InputError when the library was built without METIS, or the graph has more nodes or edges than its idx_t
/// can count; Error when METIS fails.
Array<std::int32_t> metis_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                     const AssignmentOptions& options);

}  // namespace sar
