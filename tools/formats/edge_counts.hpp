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
  /// Collective. Notes the sources (destinations) of edges of this rank.
  void add_sources(std::span<const Index> nodes) { add(nodes, has_out_edge); }
  void add_destinations(std::span<const Index> nodes) { add(nodes, has_in_edge); }
  /// Collective. Nodes of all ranks.
  [[nodiscard]] Index count_without_edges() const { return count_without(has_out_edge | has_in_edge); }
  [[nodiscard]] Index count_without_in_edges() const { return count_without(has_in_edge); }

 private:
  static constexpr std::uint8_t has_out_edge = 1, has_in_edge = 2;
  void add(std::span<const Index> nodes, std::uint8_t mark);
  [[nodiscard]] Index count_without(int marks) const;

  Communicator comm_;
  PartitionBook shares_;
  std::vector<std::uint8_t> marks_;  // of my share
};

}  // namespace sar::formats
