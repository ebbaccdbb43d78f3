// SPDX-License-Identifier: MIT

/// The nodes that negative pairs of link prediction are drawn from.
///
/// A predictor tells a pair of two users from an edge between a user and an item by the kind of its nodes. So
/// negatives go as the edges do: from a node that is the source of an edge to one that is a destination. In a
/// bipartite graph whose edges go both ways, they also go from one side to the other.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Sources and destinations of the edges that go one way.
struct CandidateNodes {
  Array<std::uint8_t> src, dst;    ///< for each node of this rank: is it one?
  Index num_src = 0, num_dst = 0;  ///< of all ranks
  Index num_edges = 0;
};

struct PairCandidates {
  /// One element; or two of a bipartite graph whose edges go both ways: from one side to the other, and back.
  std::vector<CandidateNodes> ways;
  /// Every edge joins two sides: no cycle has an odd length, or no node is both a source and a destination.
  bool is_bipartite = false;

  /// Local. "200 sources and 300 destinations, a bipartite graph".
  [[nodiscard]] std::string describe() const;
};

/// Collective. The candidates of these edges; self loops do not count. In a bipartite graph of several
/// components, the node of the smallest original id of each component is on the first side. Each edge is on
/// one rank, on any. `original_ids` are those of the rank's nodes, below 2^62. Throws the same exception on
/// every rank: ShapeError if lengths differ, InputError for an end that is not a node.
PairCandidates candidates_of_edges(const Communicator& comm, const PartitionBook& book,
                                   const Array<Index>& original_ids, std::span<const Index> src,
                                   std::span<const Index> dst);

}}  // namespace sar
