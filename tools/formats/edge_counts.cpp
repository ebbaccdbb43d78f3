// SPDX-License-Identifier: MIT

// Edges go to the owner of a hash of their ends, without direction, and are sorted there: equal neighbors are
// duplicates. O(E log(E) / P) time, 24 bytes sent for each edge.

#include "edge_counts.hpp"

#include <sar/comm/rows/row_route.hpp>
#include <sar/core/random.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

/// Edges u -> v and v -> u have the same ends in order.
struct CountedEdge {
  Index least, most;
  bool is_opposite;  ///< it goes from `most` to `least`
};

std::uint64_t hash_of_pair(Index least, Index most) {
  return (static_cast<std::uint64_t>(least) * 0x9E3779B97F4A7C15 +
          static_cast<std::uint64_t>(most) * 0xC2B2AE3D27D4EB4F) >>
         33;
}

/// Sends edges to ranks by a hash of their ends, so that equal and opposite ones meet. Collective.
Array<CountedEdge> bring_together(const Communicator& comm, const EdgeList& mine, bool one_type) {
  std::vector<CountedEdge> edges;
  std::vector<std::int32_t> targets;
  comm.agree([&] {
    edges.reserve(mine.src.size());
    targets.reserve(mine.src.size());
    for (Index e = 0; e < mine.size(); ++e) {
      const bool swap = one_type && mine.dst[e] < mine.src[e];
      const Index least = swap ? mine.dst[e] : mine.src[e], most = swap ? mine.src[e] : mine.dst[e];
      edges.push_back({least, most, swap});
      const std::uint64_t hash = hash_of_pair(least, most) % static_cast<std::uint64_t>(comm.size());
      targets.push_back(static_cast<std::int32_t>(hash));
    }
  });
  return RowRoute(comm, targets).forward(std::span<const CountedEdge>(edges));
}

}  // namespace

EdgeCounts count_edges(const Communicator& comm, const EdgeList& mine, bool one_type) {
  Array<CountedEdge> edges = bring_together(comm, mine, one_type);
  const auto ends = [](const CountedEdge& edge) { return std::pair(edge.least, edge.most); };
  std::ranges::sort(edges, {}, ends);
  EdgeCounts counts;
  for (auto first = edges.begin(); first != edges.end();) {
    const auto last =
        std::find_if(first, edges.end(), [&](const CountedEdge& edge) { return ends(edge) != ends(*first); });
    const Index all = last - first, backward = std::count_if(
                                        first, last, [](const CountedEdge&edge) { return edge.is_opposite; });
    const bool both_ways = backward > 0 && backward < all;
    counts.duplicates += all - (both_ways ? 2 : 1);
    if (one_type && first->least == first->most) counts.self_loops += all;
    if (both_ways) counts.opposites += all;
    first = last;
  }
  for (Index* count : {&counts.duplicates, &counts.self_loops, &counts.opposites})
    *count = comm.all_reduce(*count, ReduceOp::sum);
  return counts;
}

EdgeList sample_of_pairs(EdgeChunks& chunks, Index one_in) {
  EdgeList sample;
  for (const EdgeChunk& chunk : chunks.chunks())
    for (std::size_t e = 0; e < chunk.src.size(); ++e) {
      const auto [least, most] = std::minmax(chunk.src[e], chunk.dst[e]);
      // other bits than those that say the rank
      if (mix(hash_of_pair(least, most)) % static_cast<std::uint64_t>(one_in) != 0) continue;
      sample.src.push_back(chunk.src[e]);
      sample.dst.push_back(chunk.dst[e]);
      sample.id.push_back(chunk.first_id + static_cast<Index>(e));
    }
  return sample;
}

NodesWithEdges::NodesWithEdges(const Communicator& comm, Index num_nodes)
    : comm_(comm), shares_(PartitionBook::even(num_nodes, comm.size())) {
  comm.agree([&] { marks_.assign(static_cast<std::size_t>(shares_.num_nodes(comm.rank())), 0); });
}

void NodesWithEdges::add(std::span<const Index> nodes, std::uint8_t mark) {
  std::vector<Index> distinct;
  std::vector<std::int32_t> targets;
  comm_.agree([&] {
    distinct.assign(nodes.begin(), nodes.end());
    std::ranges::sort(distinct);
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const Index node : distinct) targets.push_back(shares_.owner(node));
  });
  for (const Index node : RowRoute(comm_, targets).forward(std::span<const Index>(distinct)))
    marks_[node - shares_.begin(comm_.rank())] |= mark;
}

Index NodesWithEdges::count_without(int marks) const {
  const Index mine =
      std::ranges::count_if(marks_, [&](std::uint8_t of_node) { return (of_node & marks) == 0; });
  return comm_.all_reduce(mine, ReduceOp::sum);
}

}  // namespace sar::formats
