// SPDX-License-Identifier: MIT

/// METIS partitioning (Karypis and Kumar, SIAM J. Sci. Comput. 1998) of a distributed graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns the part of each node of this rank's slice, as in assign_nodes. METIS_PartGraphKway
/// partitions the undirected simple graph of the edges (each rank's share, original ids). With
/// balance_edges and train_mask, nodes (of each type), in-edges and training nodes are constraints of one
/// multi-constraint problem (Karypis and Kumar, SC 1998). Parts may be empty. Rank 0 gathers the edges; its
/// memory is about 8 bytes per edge, 8 per undirected edge, and 4 per node and constraint. Throws
/// InputError if the library was built without METIS or if the graph has more nodes or edges than idx_t can
/// count, Error if METIS fails.
Array<std::int32_t> metis_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                     const AssignmentOptions& options);

}}  // namespace sar
