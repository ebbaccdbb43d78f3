// SPDX-License-Identifier: MIT
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/nn/conv/aggregate.hpp>

namespace sar { inline namespace SAR_PRECISION {

Variable dst_rows(const Graph& graph, Variable x) {
  return graph.topology().is_homogeneous() ? x : slice_rows(std::move(x), 0, graph.num_dst_nodes());
}

void require_feats(const Graph& graph, const NodeFeatures& feat, const InFeatures& in_feats,
                   std::string_view layer) {
  if (feat.pair()) {
    require_rows(feat.src, graph.num_src_nodes(), in_feats.src, layer, ", source features");
    require_rows(feat.dst, graph.num_dst_nodes(), in_feats.dst, layer, ", destination features");
    return;
  }
  require_block(graph, layer);
  require<ShapeError>(in_feats.src == in_feats.dst, layer, " from ", in_feats.src, " and ", in_feats.dst,
                      " features got features of one node type");
  require_rows(feat.src, graph.num_src_nodes(), in_feats.src, layer, ", features");
}
}}  // namespace sar
