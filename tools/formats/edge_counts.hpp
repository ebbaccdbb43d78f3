// SPDX-License-Identifier: MIT

/// Counts of duplicates, self loops and nodes without edges. No rank holds the whole graph.
#pragma once

#include "edge_chunks.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace sar::formats {

struct EdgeCounts {
  Index duplicates = 0;  ///< edges that have the ends of an earlier one
  Index self_loops = 0;
  Index opposites = 0;  ///< edges u -> v of which there is v -> u, without self loops
};

/// Collective. Counts the edges of all ranks, of which each has `mine`. Ends of two types have no self
/// loops and no opposites.
EdgeCounts count_edges(const Communicator& comm, const EdgeList& mine, bool one_type);

/// Local. One in `one_in` of the pairs of nodes, by a hash of the two, and this rank's edges between them
/// in either direction.
EdgeList sample_of_pairs(EdgeChunks& chunks, Index one_in);

/// Which nodes of a type have out-edges and in-edges. Each rank knows its even share of the nodes.
class NodesWithEdges {
 public:
  NodesWithEdges(const Communicator& comm, Index num_nodes);
  static constexpr std::uint8_t has_out_edge = 1, has_in_edge = 2;
  /// Collective. Marks the sources (destinations) of edges of this rank.
  void add(std::span<const Index> nodes, std::uint8_t mark);
  /// Collective. Nodes of all ranks that have none of the marks.
  [[nodiscard]] Index count_without(int marks) const;

 private:
  Communicator comm_;
  PartitionBook shares_;
  std::vector<std::uint8_t> marks_;  // of my share
};

}  // namespace sar::formats
