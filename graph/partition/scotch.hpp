// SPDX-License-Identifier: MIT

/// PT-Scotch partitioning (Chevalier and Pellegrini, Parallel Computing 2008) of a distributed graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns the part of each node of this rank's slice, as in assign_nodes. SCOTCH_dgraphPart
/// partitions the undirected graph of the edges (each rank's share, original ids). Parallel edges count
/// with their multiplicity, self loops are ignored. No rank holds more than its slice. Scotch balances one
/// weight: the sum of a node's shares of all nodes, in-edges and training nodes, as far as the options
/// balance them. If a part then exceeds the limit of one of these, nodes move as in balance_by_ldg. Parts
/// may be empty. The result depends on the number of ranks. Memory: NeighborLists, 12 bytes per neighbor in
/// them (24 if Scotch uses 64-bit integers), and the memory of Scotch. Throws InputError if the library was
/// built without PT-Scotch or if the graph has more nodes or edges than SCOTCH_Num can count, Error if
/// Scotch fails.
Array<std::int32_t> scotch_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                      const AssignmentOptions& options);

}}  // namespace sar
