/// Which part each node belongs to, computed by all workers from a graph that is spread over them.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/partition.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>
#include <span>

namespace sar {

struct AssignmentOptions {
  int parts = 1;
  std::uint64_t seed = 0;  ///< random, metis
  /// metis, ldg: the parts also get about the same number of in-edges.
  bool balance_edges = true;
  /// metis, ldg: and of training nodes. One byte for each node of this rank's slice; empty on every rank: not
  /// asked for.
  std::span<const std::uint8_t> train_mask = {};
  /// ldg: how often the nodes are streamed, each time with the assignment of the time before at hand.
  int passes = 5;
};

/// The part of each node of this rank's slice [slices.begin(rank), slices.end(rank)), where slices =
/// PartitionBook::even(num_nodes, comm.size()). `edges` is this rank's share in original ids, in any
/// distribution. Every part gets a node, if there are enough. metis and ldg: what is balanced stays within
/// about 5 % of the average, where single nodes are not larger. Memory per rank about (nodes + edges) /
/// ranks, except for metis, which gathers the graph on rank 0. Collective. Throws InputError, the same on
/// every rank, as partition_nodes, for an edge with an end that is no node, a mask of another length, parts
/// or passes below 1.
Array<std::int32_t> assign_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                 PartitionMethod method, const AssignmentOptions& options);

}  // namespace sar
