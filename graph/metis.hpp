/// METIS (Karypis and Kumar, SIAM J. Sci. Comput. 1998) on a graph that is spread over the workers.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/node_data.hpp>

#include <cstdint>

namespace sar {

/// The part of every original node: METIS_PartGraphKway into comm.size() parts of the undirected simple graph
/// that underlies the edges (each rank's share, original ids). Rank 0 gathers the edges and needs about 8
/// bytes for each edge and 8 for each undirected one; every rank gets 4 bytes for each node. Collective.
/// Throws InputError when the library was built without METIS, or the graph has more nodes or edges than its
/// idx_t can count; Error when METIS fails.
Array<std::int32_t> metis_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                     std::uint64_t seed);

}  // namespace sar
