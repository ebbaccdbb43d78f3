// SPDX-License-Identifier: MIT

// The score of the destination end, [n, H], is computed before the fused operation; the kernel computes
// that of the source end from the rows z, so only z is fetched. Without a residual, the operation adds the
// bias itself. attention() computes the coefficients by separate operations, with memory per edge.
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/gat_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

GATConv::GATConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen,
                 const GATConvOptions& options)
    : AttentionConv("GATConv", in_feats, out_feats, num_heads, options.feat_drop, options.attn_drop, gen),
      options_(options) {
  const Index width = num_heads * out_feats;
  make_projection(fc_, Start::xavier, gen);
  make_head_vector("attn_l", attn_l_, gen);
  make_head_vector("attn_r", attn_r_, gen);
  if (options.residual && in_feats.dst != width)
    make_linear(res_fc_, "res_fc", in_feats.dst, options.bias, Start::xavier, gen);
  if (options.bias && !res_fc_) register_parameter("bias", bias_, Tensor::zeros({width}));
}

Variable GATConv::operator()(const Graph& graph, const NodeFeatures& feat, const Variable& edge_weight) {
  return graph.comm().agree([&] {
    const Ends x = ends(graph, feat);
    Variable y = [&] {
      const Ends z = project(graph, x, fc_);
      AttentionOptions attention = attention_options(edge_weight);
      if (!options_.residual) attention.bias = bias_;
      return gat_attention(graph, z.src, attn_l_, head_dots(z.dst, attn_r_), options_.negative_slope,
                           attention);
    }();
    if (options_.residual) y = add_residual(std::move(y), x.dst, res_fc_);
    if (options_.residual && bias_.defined())
      y = add(std::move(y), reshape(bias_, {num_heads(), out_feats()}));
    return options_.activation ? options_.activation(std::move(y)) : y;
  });
}

Variable GATConv::attention(const Graph& graph, const NodeFeatures& feat, const Variable& edge_weight) {
  return graph.comm().agree([&] {
    const Ends z = project(graph, ends(graph, feat, false), fc_);
    require<ShapeError>(
        !edge_weight.defined() ||
            (edge_weight.num_rows() == graph.num_edges() && edge_weight.value().row_size() == 1),
        "GATConv, edge weights have shape ", edge_weight.shape(), ", expected [", graph.num_edges(), "]");
    Variable alpha = coefficients_of(
        graph,
        leaky_relu(graph.apply_edges(fn::u_add_v(head_dots(z.src, attn_l_), head_dots(z.dst, attn_r_))),
                   options_.negative_slope));
    return edge_weight.defined() ? mul(std::move(alpha), reshape(edge_weight, {graph.num_edges(), 1, 1}))
                                 : alpha;
  });
}

GATv2Conv::GATv2Conv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen,
                     const GATv2ConvOptions& options)
    : AttentionConv("GATv2Conv", in_feats, out_feats, num_heads, options.feat_drop, options.attn_drop, gen),
      options_(options) {
  require<InputError>(!options.share_weights || in_feats.src == in_feats.dst,
                      "GATv2Conv with shared weights has sources of ", in_feats.src, " and destinations of ",
                      in_feats.dst, " features, expected equal widths");
  const auto make = [&](std::optional<Linear>& fc, const char* name, Index in) {
    make_linear(fc, name, in, options.bias, Start::xavier, gen);
  };
  make(fc_.src, "fc_src", in_feats.src);
  if (!options.share_weights) make(fc_.dst, "fc_dst", in_feats.dst);
  make_head_vector("attn", attn_, gen);
  if (options.residual && in_feats.dst != num_heads * out_feats) make(res_fc_, "res_fc", in_feats.dst);
}

Variable GATv2Conv::operator()(const Graph& graph, const NodeFeatures& feat) {
  return graph.comm().agree([&] {
    const Ends x = ends(graph, feat);
    Variable y = [&] {
      const Ends z = project(graph, x, fc_);
      return gatv2_attention(graph, z.src, z.dst, attn_, options_.negative_slope, attention_options());
    }();
    if (options_.residual) y = add_residual(std::move(y), x.dst, res_fc_);
    return options_.activation ? options_.activation(std::move(y)) : y;
  });
}

Variable GATv2Conv::attention(const Graph& graph, const NodeFeatures& feat) {
  return graph.comm().agree([&] {
    const Ends z = project(graph, ends(graph, feat, false), fc_);
    return coefficients_of(graph,
                           graph.apply_edges([src = z.src, dst = z.dst, attn = attn_,
                                              slope = options_.negative_slope](const EdgeBatch& edges) {
                             return head_dots(leaky_relu(edges.src(src) + edges.dst(dst), slope), attn);
                           }));
  });
}

// Order: scores from one number per node and head (apply_edges) and from the edge features, edge_softmax,
// sums of edge features weighted by the coefficients, their product with W_edge, and the weighted sum of
// the source rows, which is added in the memory of the product.

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
