/// Which part each node belongs to; all ranks compute it from a graph that is spread over them.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// The part of each node of this rank's slice [slices.begin(rank), slices.end(rank)), where
///     slices = PartitionBook::even(num_nodes, comm.size()).
/// `edges` is this rank's share in original ids, in any distribution. Every part gets a node if there are
/// enough. metis, ldg and scotch keep what they balance within about 5 % of the average, as far as single
/// nodes are not larger. A rank needs memory for about (nodes + edges) / ranks; metis gathers the graph on
/// rank 0. Collective. Throws InputError, the same on every rank, as partition_nodes does, for an edge with
/// an end that is no node, for a mask of another length, and for parts or passes below 1.
Array<std::int32_t> assign_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                 PartitionMethod method, const AssignmentOptions& options);

}  // namespace sar
