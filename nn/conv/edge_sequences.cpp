// SPDX-License-Identifier: MIT

// A counting sort of the edges by destination, a sort of each destination's edges by id, and a sort of the
// destinations by length. Then one pass per step writes the edges of the sequences that still run:
// O(edges) together. On one thread.
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/edge_sequences.hpp>

#include <algorithm>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {

EdgeSequences edge_sequences(const Graph& graph) {
  const GraphTopology& shards = graph.topology();
  const auto num_dst = static_cast<std::size_t>(graph.num_dst_nodes());
  // counting sort by destination, then by id
  Array<Index> begin(num_dst + 1, 0), by_dst(static_cast<std::size_t>(graph.num_edges()));
  shards.for_each_edge([&](Index, Index v, Index) { ++begin[v + 1]; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  Array<Index> next(begin.begin(), begin.end() - 1);
  shards.for_each_edge([&](Index, Index v, Index edge) { by_dst[next[v]++] = edge; });
  const Array<Index>& ids = graph.edge_ids();
  for (std::size_t v = 0; v < num_dst; ++v)
    std::sort(by_dst.begin() + begin[v], by_dst.begin() + begin[v + 1],
              [&](Index a, Index b) { return ids[a] < ids[b]; });

  const auto length = [&](Index v) { return begin[v + 1] - begin[v]; };
  Array<Index> dst(num_dst);
  std::iota(dst.begin(), dst.end(), Index{0});
  std::stable_sort(dst.begin(), dst.end(), [&](Index a, Index b) { return length(a) > length(b); });

  EdgeSequences sequences;
  sequences.position.resize(num_dst);
  for (std::size_t i = 0; i < num_dst; ++i) sequences.position[dst[i]] = static_cast<Index>(i);
  sequences.edges.reserve(by_dst.size());
  std::size_t running = num_dst;
  for (Index t = 0;; ++t) {
    while (running > 0 && length(dst[running - 1]) <= t) --running;
    if (running == 0) return sequences;
    sequences.step_rows.push_back(static_cast<Index>(running));
    for (std::size_t i = 0; i < running; ++i) sequences.edges.push_back(by_dst[begin[dst[i]] + t]);
  }
}
}}  // namespace sar
