// SPDX-License-Identifier: MIT

// Order: scores from one number per node and head (apply_edges) and from the edge features, edge_softmax,
// sums of edge features weighted by the coefficients, their product with W_edge, and the weighted sum of
// the source rows, which is added in the memory of the product.
#include <sar/autograd/ops.hpp>
#include <sar/nn/conv/edge_gat_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

EdgeGATConv::EdgeGATConv(const InFeatures& in_feats, Index edge_feats, Index out_feats, Index num_heads,
                         Generator& gen, const EdgeGATConvOptions& options)
    : AttentionConv("EdgeGATConv", in_feats, out_feats, num_heads, options.feat_drop, options.attn_drop, gen),
      options_(options),
      fc_edge_(edge_feats, num_heads * out_feats, gen, false) {
  make_projection(fc_, Start::xavier, gen);
  start_xavier(fc_edge_, gen);
  register_module("fc_edge", fc_edge_);
  make_head_vector("attn_l", attn_l_, gen);
  make_head_vector("attn_r", attn_r_, gen);
  make_head_vector("attn_edge", attn_edge_, gen);
  if (options.residual) make_linear(res_fc_, "res_fc", in_feats.dst, false, Start::xavier, gen);
  if (options.bias) register_parameter("bias", bias_, Tensor::zeros({num_heads * out_feats}));
}

Variable EdgeGATConv::coefficients(const Graph& graph, const Ends& z, const Variable& edge_feats) const {
  // <attn_edge[h], W_h e> = <W_h^T attn_edge[h], e>
  const Variable attn = reshape(head_linear_transposed(attn_edge_, fc_edge_.weight()),
                                {num_heads(), fc_edge_.weight().shape()[1]});
  Variable scores = add(linear(edge_feats, attn),
                        graph.apply_edges(fn::u_add_v(head_dots(z.src, attn_l_), head_dots(z.dst, attn_r_))));
  return coefficients_of(graph, leaky_relu(std::move(scores), options_.negative_slope));
}

Variable EdgeGATConv::operator()(const Graph& graph, const NodeFeatures& feat, const Variable& edge_feats) {
  return graph.comm().agree([&] {
    const Ends x = ends(graph, feat, true, edge_feats, fc_edge_.weight().shape()[1]);
    const Ends z = project(graph, x, fc_);
    const Variable alpha = drop_attention(graph, coefficients(graph, z, edge_feats));
    Variable y = head_linear(weighted_edge_sums(graph, alpha, edge_feats), fc_edge_.weight());
    y = graph.update_all(fn::u_mul_e(z.src, alpha), fn::sum, std::move(y));
    if (res_fc_) y = add_residual(std::move(y), x.dst, res_fc_);
    if (bias_.defined()) y = add(std::move(y), reshape(bias_, {num_heads(), out_feats()}));
    return options_.activation ? options_.activation(std::move(y)) : y;
  });
}

Variable EdgeGATConv::attention(const Graph& graph, const NodeFeatures& feat, const Variable& edge_feats) {
  return graph.comm().agree([&] {
    const Ends x = ends(graph, feat, false, edge_feats, fc_edge_.weight().shape()[1]);
    return coefficients(graph, project(graph, x, fc_), edge_feats);
  });
}
}}  // namespace sar
