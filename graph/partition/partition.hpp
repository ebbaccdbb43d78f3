/// Partitioning: how the nodes of a dataset (original ids) become the contiguous ranges of the ranks (global
/// ids, PartitionBook).
///
/// Room graph/partition: The choice of the part that each node belongs to, and of the order of the nodes in a
/// part.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/partition/node_partition.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// Partitions a graph over the ranks of `comm`. `edges` is this rank's share of the edges in original ids.
/// Only metis, ldg and scotch read them; they balance nodes and in-edges. The result describes the same partition on every rank.
/// Collective. Throws InputError for metis and scotch when the library was built without it, or when the graph is too
/// large for its indices.
NodePartition partition_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                              PartitionMethod method, std::uint64_t seed);

}  // namespace sar
