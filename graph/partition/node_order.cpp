// SPDX-License-Identifier: MIT

// Label propagation in rounds, each O(E): for a node, the votes of its neighbors are summed by label. Then
// clusters are contracted, which shrinks the graph geometrically, so that all levels together take O(E).
// Memory traffic: per edge and round a random read of a label (4 bytes) and an update of a sum (4 bytes).

#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Maximum nodes of a first-level cluster: their rows fit in the L2 cache at usual widths.
constexpr std::uint64_t first_cap = 1024;
constexpr std::uint64_t cap_growth = 8;  // per level of clusters of clusters
constexpr int max_rounds = 8;            // of label propagation per level

/// An undirected weighted graph; a node represents `size` nodes of the original graph.
struct NeighborGraph {
  Array<Index> offsets{0};
  Array<std::uint32_t> neighbors;
  Array<std::uint32_t> weights;  // of the edges to neighbors; empty: 1
  Array<std::uint32_t> sizes;

  [[nodiscard]] std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(sizes.size()); }
};

/// Returns both directions of all edges, without self loops.
NeighborGraph undirected(Index num_nodes, std::span<const Index> src, std::span<const Index> dst) {
  NeighborGraph graph;
  graph.sizes.assign(num_nodes, 1);
  Array<Index>& ends = graph.offsets;
  ends.assign(num_nodes + 1, 0);
  const auto is_node = [&](Index v) { return 0 <= v && v < num_nodes; };
  for (std::size_t e = 0; e < src.size(); ++e) {
    require<InputError>(is_node(src[e]) && is_node(dst[e]), "an edge joins nodes ", src[e], " and ", dst[e],
                        ", expected ", index_range(num_nodes));
    if (src[e] != dst[e]) {
      ++ends[src[e] + 1];
      ++ends[dst[e] + 1];
    }
  }
  for (std::size_t v = 1; v < ends.size(); ++v) ends[v] += ends[v - 1];
  graph.neighbors.resize(ends.back());
  Array<Index> next(ends.begin(), ends.end() - 1);
  for (std::size_t e = 0; e < src.size(); ++e)
    if (src[e] != dst[e]) {
      graph.neighbors[next[src[e]]++] = static_cast<std::uint32_t>(dst[e]);
      graph.neighbors[next[dst[e]]++] = static_cast<std::uint32_t>(src[e]);
    }
  return graph;
}

/// Sums by key. Clearing takes time proportional to the number of keys that were used.
class Tally {
 public:
  explicit Tally(std::size_t keys) : sums_(keys, 0) {}
  void add(std::uint32_t key, std::uint32_t number) {
    if (sums_[key] == 0) keys_.push_back(key);
    sums_[key] += number;
  }
  /// The keys in the order of their first addition.
  [[nodiscard]] const std::vector<std::uint32_t>& keys() const { return keys_; }
  [[nodiscard]] std::uint32_t sum(std::uint32_t key) const { return sums_[key]; }
  void clear() {
    for (const std::uint32_t key : keys_) sums_[key] = 0;
    keys_.clear();
  }

 private:
  Array<std::uint32_t> sums_;
  std::vector<std::uint32_t> keys_;
};

/// Label propagation (Raghavan, Albert, Kumara, 2007) with at most `cap` nodes per cluster.
Array<std::uint32_t> find_clusters(const NeighborGraph& graph, std::uint64_t cap) {
  const std::uint32_t n = graph.num_nodes();
  Array<std::uint32_t> cluster = consecutive<std::uint32_t>(0, n);
  Array<std::uint32_t> sizes(graph.sizes);
  Tally votes(n);
  for (int round = 0; round < max_rounds; ++round) {
    std::uint32_t moved = 0;
    for (std::uint32_t v = 0; v < n; ++v) {
      for (Index k = graph.offsets[v]; k < graph.offsets[v + 1]; ++k)
        votes.add(cluster[graph.neighbors[k]], graph.weights.empty() ? 1 : graph.weights[k]);
      std::uint32_t best = cluster[v];
      std::uint32_t most = votes.sum(best);
      for (const std::uint32_t c : votes.keys())
        if (votes.sum(c) > most && std::uint64_t{sizes[c]} + graph.sizes[v] <= cap) {
          best = c;
          most = votes.sum(c);
        }
      votes.clear();
      if (best == cluster[v]) continue;
      sizes[cluster[v]] -= graph.sizes[v];
      sizes[best] += graph.sizes[v];
      cluster[v] = best;
      ++moved;
    }
    if (moved < n / 64) break;
  }
  // number clusters from 0 on, in the order of their first nodes
  constexpr std::uint32_t unseen = std::numeric_limits<std::uint32_t>::max();
  Array<std::uint32_t> number(n, unseen);
  std::uint32_t count = 0;
  for (std::uint32_t& c : cluster) {
    if (number[c] == unseen) number[c] = count++;
    c = number[c];
  }
  return cluster;
}

/// Contracts each cluster to a node.
NeighborGraph contract(const NeighborGraph& graph, const Array<std::uint32_t>& cluster,
                       const Grouped<std::uint32_t>& members) {
  NeighborGraph coarse;
  const std::size_t count = members.begin.size() - 1;
  Tally edges(count);
  for (std::size_t c = 0; c < count; ++c) {
    std::uint32_t size = 0;
    for (const std::uint32_t v : members.of(static_cast<Index>(c))) {
      size += graph.sizes[v];
      for (Index k = graph.offsets[v]; k < graph.offsets[v + 1]; ++k) {
        const std::uint32_t other = cluster[graph.neighbors[k]];
        if (other != c) edges.add(other, graph.weights.empty() ? 1 : graph.weights[k]);
      }
    }
    for (const std::uint32_t other : edges.keys()) {
      coarse.neighbors.push_back(other);
      coarse.weights.push_back(edges.sum(other));
    }
    edges.clear();
    coarse.sizes.push_back(size);
    coarse.offsets.push_back(static_cast<Index>(coarse.neighbors.size()));
  }
  return coarse;
}

}  // namespace

Array<Index> locality_order(Index num_nodes, std::span<const Index> src, std::span<const Index> dst) {
  require<InputError>(0 <= num_nodes && num_nodes < Index{1} << 32, "cannot order ", num_nodes,
                      " nodes, expected fewer than 2^32");
  require<InputError>(src.size() == dst.size(), "there are ", src.size(), " sources and ", dst.size(),
                      " destinations, expected as many of both");
  NeighborGraph graph = undirected(num_nodes, src, dst);
  Array<Index> degrees(num_nodes);
  std::adjacent_difference(graph.offsets.begin() + 1, graph.offsets.end(), degrees.begin());

  std::vector<Grouped<std::uint32_t>> levels;
  for (std::uint64_t cap = first_cap; graph.num_nodes() > 1; cap *= cap_growth) {
    const Array<std::uint32_t> clusters = find_clusters(graph, cap);
    const Index count = clusters.empty() ? 0 : Index{*std::ranges::max_element(clusters)} + 1;
    levels.push_back(grouped(std::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(clusters.size())),
                             count, [&](std::uint32_t v) { return clusters[v]; }));
    graph = contract(graph, clusters, levels.back());
    if (cap >= static_cast<std::uint64_t>(num_nodes)) break;  // the remaining clusters are hardly connected
  }
  // expand from the top level down: clusters in the order of the level above, each followed by its members
  Array<std::uint32_t> order = consecutive<std::uint32_t>(0, graph.num_nodes());
  for (std::size_t level = levels.size(); level-- > 0;) {
    Array<std::uint32_t> below;
    for (const std::uint32_t c : order) {
      const auto first = static_cast<std::ptrdiff_t>(below.size());
      const auto members = levels[level].of(c);
      below.insert(below.end(), members.begin(), members.end());
      if (level == 0)
        std::stable_sort(below.begin() + first, below.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return degrees[a] > degrees[b]; });
    }
    order = std::move(below);
  }
  return {order.begin(), order.end()};
}

}}  // namespace sar
