// SPDX-License-Identifier: MIT

// For each destination, its edges are passed three times: to count them by type, to write 1 / count, and
// to set the counts to zero. O(edges) time and one count per type.
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/relation_norm.hpp>

#include <algorithm>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Iterates over the in-edges of ascending destinations in one shard, as ranges [begin, end) in edge order.
class InEdges {
 public:
  explicit InEdges(const GraphShard& shard) : shard_(shard) {}

  /// Returns the in-edges of destination `v`. Calls must have ascending v.
  [[nodiscard]] std::pair<Index, Index> of(Index v) {
    while (row_ < shard_.num_rows() && shard_.dst_row(row_) < v) ++row_;
    if (row_ == shard_.num_rows() || shard_.dst_row(row_) != v) return {0, 0};
    return {shard_.edge(shard_.row_begin[row_]), shard_.edge(shard_.row_begin[row_ + 1])};
  }

 private:
  const GraphShard& shard_;
  Index row_ = 0;
};

}  // namespace

Tensor relation_norm(const GraphShardManager& graph, const EdgeTypes& edge_types) {
  constexpr Index most_types = Index{1} << 16;
  const GraphTopology& shards = graph.topology();
  const Index edges = graph.num_edges();
  const bool has_types = edge_types.size() > 0;
  const EdgeTypes types = has_types ? edge_types.checked(edges, most_types, "relation_norm") : EdgeTypes();
  const auto type = [&](Index edge) { return has_types ? types.numbers()[edge] : std::size_t{0}; };
  std::vector<Index> counts(has_types ? *std::ranges::max_element(types.numbers()) + std::size_t{1} : 1, 0);
  Tensor norm({edges, 1});
  InEdges of_local(shards.local), of_remote(shards.remote);
  for (Index v = 0; v < graph.num_dst_nodes(); ++v) {
    const std::pair<Index, Index> ranges[] = {of_local.of(v), of_remote.of(v)};
    for (const auto& [begin, end] : ranges)
      for (Index e = begin; e < end; ++e) ++counts[type(e)];
    for (const auto& [begin, end] : ranges)
      for (Index e = begin; e < end; ++e) norm.data()[e] = real{1} / static_cast<real>(counts[type(e)]);
    for (const auto& [begin, end] : ranges)
      for (Index e = begin; e < end; ++e) counts[type(e)] = 0;
  }
  return norm;
}

}}  // namespace sar
