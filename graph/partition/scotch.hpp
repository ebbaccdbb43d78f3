/// PT-Scotch (Chevalier and Pellegrini, Parallel Computing 2008) for a graph that is spread over the ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// The part of each node of this rank's slice, as in assign_nodes. SCOTCH_dgraphPart divides the undirected
/// graph that underlies the edges (each rank's share, original ids); parallel edges count as often as they
/// are there, self loops do not. No rank holds more than its slice. Scotch balances one weight: the sum of
/// the shares of a node in all nodes, in-edges and training nodes, as far as they shall be balanced. Nodes of
/// parts that are too large in one of them move on as in balance_by_ldg. Parts may be empty. The result
/// depends on the number of ranks. Memory: NeighborLists, 12 bytes for each of its neighbours (24 with 64-bit
/// integers of Scotch), and what Scotch needs. Collective. Throws InputError when the library was built
/// without PT-Scotch, or the graph has more nodes or edges than its SCOTCH_Num can count; Error when Scotch
/// fails.
Array<std::int32_t> scotch_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                      const AssignmentOptions& options);

}  // namespace sar
