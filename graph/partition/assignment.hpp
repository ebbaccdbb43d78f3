// SPDX-License-Identifier: MIT

/// Assigns nodes to parts; all ranks compute the assignment of a distributed graph.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the part of each node of this rank's slice [slices.begin(rank), slices.end(rank)), where
///
///     slices = PartitionBook::even(num_nodes, comm.size())
/// `edges` is this rank's share in original ids, in any distribution. Every part gets a node if there are
/// enough nodes. metis, ldg and scotch balance within about 5 % of the average, unless a single node exceeds
/// that. Memory of a rank: about (nodes + edges) / ranks; metis gathers the graph on rank 0. Throws
/// InputError on every rank as partition_nodes does, for an edge with an end that is not a node, for a mask
/// of the wrong length, and for parts or passes below 1. Collective.
Array<std::int32_t> assign_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                 PartitionMethod method, const AssignmentOptions& options);

}}  // namespace sar
