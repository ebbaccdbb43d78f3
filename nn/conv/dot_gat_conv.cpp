// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
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
  register_parameter_or_buffer("beta", beta_, learn_beta);
}

Variable AGNNConv::operator()(const Graph& graph, const NodeFeatures& feat) const {
  return graph.comm().agree([&] {
    require<ShapeError>(feat.src.shape().dims() == 2, "AGNNConv, features have shape ", feat.src.shape(),
                        ", expected [", graph.num_src_nodes(), ", D]");
    require_feats(graph, feat, feat.src.shape()[1], "AGNNConv");
    return cosine_attention(graph, feat.src, dst_feats(graph, feat), beta_);
  });
}

// With edge features, keys and values are fetched one after the other: q k^T on the edges, plus the
// product of e with lin_edge^T q, [destinations, H, edge_dim]; edge_softmax; sums of e weighted by the
// coefficients, times lin_edge; the weighted sum of values, added in the memory of that product. The gate
// splits the weights of lin_beta, so that [a, s, a - s] is never made.

TransformerConv::TransformerConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen,
                                 const TransformerConvOptions& options)
    : AttentionConv("TransformerConv", in_feats, out_feats, num_heads, 0, options.dropout, gen),
      options_(options),
      lin_key_(in_feats.src, num_heads * out_feats, gen, options.bias),
      lin_query_(in_feats.dst, num_heads * out_feats, gen, options.bias),
      lin_value_(in_feats.src, num_heads * out_feats, gen, options.bias) {
  require<InputError>(options.edge_dim >= 0, "TransformerConv with edge_dim ", options.edge_dim);
  register_module("lin_key", lin_key_);
  if (options.bias) lin_key_.freeze("bias");
  register_module("lin_query", lin_query_);
  register_module("lin_value", lin_value_);
  const Index width = options.concat ? num_heads * out_feats : out_feats;
  if (options.edge_dim > 0)
    make_module("lin_edge", lin_edge_, options.edge_dim, num_heads * out_feats, gen, false);
  make_module("lin_skip", lin_skip_, in_feats.dst, width, gen, options.bias);
  if (options.beta && options.root_weight) make_module("lin_beta", lin_beta_, 3 * width, 1, gen, false);
}

Variable TransformerConv::coefficients(const Graph& graph, const Ends& x, const Variable& edge_feats) const {
  const Variable query = cut_heads(lin_query_(x.dst));
  Variable scores = graph.apply_edges(fn::u_dot_v(cut_heads(lin_key_(x.src)), query));
  if (lin_edge_) {
    const Variable rows = reshape(edge_feats, {graph.num_edges(), 1, options_.edge_dim});
    scores = add(std::move(scores),
                 graph.apply_edges(fn::v_dot_e(head_linear_transposed(query, lin_edge_->weight()), rows)));
  }
  return coefficients_of(graph, std::move(scores) * dot_scale());
}

Variable TransformerConv::aggregate(const Graph& graph, const Ends& x, const Variable& edge_feats) {
  if (!lin_edge_)
    return dot_attention(graph, cut_heads(lin_key_(x.src)), cut_heads(lin_query_(x.dst)),
                         cut_heads(lin_value_(x.src)), dot_scale(), attention_options());
  const Variable alpha = drop_attention(graph, coefficients(graph, x, edge_feats));
  Variable y = head_linear(weighted_edge_sums(graph, alpha, edge_feats), lin_edge_->weight());
  return graph.update_all(fn::u_mul_e(cut_heads(lin_value_(x.src)), alpha), fn::sum, std::move(y));
}

Variable TransformerConv::operator()(const Graph& graph, const NodeFeatures& feat,
                                     const Variable& edge_feats) {
  return graph.comm().agree([&] {
    const Ends x = ends(graph, feat, true, edge_feats, options_.edge_dim);
    Variable y = aggregate(graph, x, edge_feats);
    y = options_.concat ? join_heads(std::move(y)) : head_mean(std::move(y));
    if (!options_.root_weight) return y;
    if (!lin_beta_) {
      y = add_linear(std::move(y), x.dst, lin_skip_->weight());
      return options_.bias ? add(std::move(y), lin_skip_->bias()) : y;
    }
    // [a, s, a - s] W^T = a (W_1 + W_3)^T + s (W_2 - W_3)^T
    const Variable skip = (*lin_skip_)(x.dst);
    const Index width = y.shape()[1];
    const auto part = [&](Index i) { return slice_columns(lin_beta_->weight(), i * width, (i + 1) * width); };
    const Variable gate = sigmoid(linear(y, part(0) + part(2)) + linear(skip, part(1) - part(2)));
    return add(y, mul(gate, sub(skip, y)));
  });
}

Variable TransformerConv::attention(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats) {
  return graph.comm().agree([&] {
    return coefficients(graph, ends(graph, feat, false, edge_feats, options_.edge_dim), edge_feats);
  });
}
}}  // namespace sar
