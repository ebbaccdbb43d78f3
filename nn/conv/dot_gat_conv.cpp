// SPDX-License-Identifier: MIT
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/dot_gat_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

DotGatConv::DotGatConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen)
    : AttentionConv("DotGatConv", in_feats, out_feats, num_heads, 0, 0, gen) {
  make_projection(fc_, Start::linear, gen);
}

Variable DotGatConv::operator()(const Graph& graph, const NodeFeatures& feat) {
  return graph.comm().agree([&] {
    const Ends z = project(graph, ends(graph, feat), fc_);
    return dot_attention(graph, z.src, z.dst, {}, dot_scale());
  });
}

Variable DotGatConv::attention(const Graph& graph, const NodeFeatures& feat) {
  return graph.comm().agree([&] {
    const Ends z = project(graph, ends(graph, feat), fc_);
    return coefficients_of(graph, graph.apply_edges(fn::u_dot_v(z.src, z.dst)) * dot_scale());
  });
}

AGNNConv::AGNNConv(real init_beta, bool learn_beta) : beta_(Tensor::full({1}, init_beta), learn_beta) {
  if (learn_beta)
    register_parameter("beta", beta_);
  else
    register_buffer("beta", beta_.value());
}

Variable AGNNConv::operator()(const Graph& graph, const NodeFeatures& feat) const {
  return graph.comm().agree([&] {
    require<ShapeError>(feat.src.shape().dims() == 2, "AGNNConv, features have shape ", feat.src.shape(),
                        ", expected [", graph.num_src_nodes(), ", D]");
    require_feats(graph, feat, feat.src.shape()[1], "AGNNConv");
    return cosine_attention(graph, feat.src, dst_feats(graph, feat), beta_);
  });
}
}}  // namespace sar
