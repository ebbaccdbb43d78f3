/// METIS (Karypis and Kumar, SIAM J. Sci. Comput. 1998) for a graph that is spread over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// The part of each node of this rank's slice, as in assign_nodes. METIS_PartGraphKway divides the undirected
/// simple graph that underlies the edges (each rank's share, original ids). With balance_edges and
/// train_mask, nodes (of each type), in-edges and training nodes are constraints of one multi-constraint
/// problem (Karypis and Kumar, SC 1998). Parts may be empty. Rank 0 gathers the edges. It needs about 8 bytes
/// for each edge, 8 for each undirected edge, and 4 for each node and constraint. Collective. Throws
/// InputError when the library was built without METIS, or the graph has more nodes or edges than its idx_t
/// can count; Error when METIS fails.
Array<std::int32_t> metis_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                     const AssignmentOptions& options);

}  // namespace sar
