// SPDX-License-Identifier: MIT

/// Partitioning: maps the nodes of a dataset (original ids) to the contiguous ranges of the ranks (global
/// ids, PartitionBook).
///
/// Room graph/partition: Assigns nodes to parts and orders the nodes within a part.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/partition/node_partition.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Partitions a graph over the ranks of `comm`. `edges` is this rank's share of the edges in
/// original ids; only metis, ldg and scotch read them, to reduce cut edges and to balance nodes and
/// in-edges. The result is the same partition on every rank. Throws InputError for metis and scotch if the
/// library was built without it or if the graph is too large for its indices.
NodePartition partition_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                              PartitionMethod method, std::uint64_t seed);

/// Collective. Returns the part of each node of this rank's slice [slices.begin(rank), slices.end(rank)),
/// where
///
///     slices = PartitionBook::even(num_nodes, comm.size())
/// `edges` is this rank's share in original ids, in any distribution. Every part gets a node if there are
/// enough nodes. metis, ldg and scotch balance within about 5 % of the average, unless a single node exceeds
/// that. Memory of a rank: about (nodes + edges) / ranks; metis gathers the graph on rank 0. Throws
/// InputError on every rank as partition_nodes does, for an edge with an end that is not a node, for a mask
/// of the wrong length, and for parts or passes below 1.
Array<std::int32_t> assign_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                 PartitionMethod method, const AssignmentOptions& options);

/// Collective. The partition of each node type, from the part of each node of this rank's slice of the
/// homogeneous form, in which the nodes of type t are first_of_type[t] to first_of_type[t + 1] - 1.
std::vector<NodePartition> partition_of_types(const Communicator& comm, std::span<const Index> first_of_type,
                                              Array<std::int32_t> part_of, int parts);

}}  // namespace sar
