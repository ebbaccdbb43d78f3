// SPDX-License-Identifier: MIT

// Keys and values of all nodes are one gather_mm with both matrices side by side, [n, 2, H, D], which is
// fetched and attended to by typed_attention(). The scale 1 / sqrt(D) and relation_pri are multiplied into
// the matrices relation_att, [types, H, D, D], and not into scores.
#include <sar/autograd/row_sums.hpp>
#include <sar/graph/message/typed_sum.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/hgt_conv.hpp>

#include <cmath>
#include <string>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

HGTConv::HGTConv(Index in_size, Index head_size, Index num_heads, Index num_ntypes, Index num_etypes,
                 Generator& gen, const HGTConvOptions& options)
    : in_size_(in_size),
      head_size_(head_size),
      heads_(num_heads),
      num_ntypes_(num_ntypes),
      num_etypes_(num_etypes),
      linear_k_(in_size, num_heads * head_size, num_ntypes, gen),
      linear_q_(in_size, num_heads * head_size, num_ntypes, gen),
      linear_v_(in_size, num_heads * head_size, num_ntypes, gen),
      linear_a_(num_heads * head_size, num_heads * head_size, num_ntypes, gen),
      drop_(options.dropout, gen) {
  require<InputError>(num_heads > 0 && head_size > 0 && num_etypes > 0, "HGTConv with ", num_heads,
                      " heads of ", head_size, " features and ", num_etypes, " edge types");
  const Index width = num_heads * head_size;
  register_parameter("skip", skip_, Tensor::full({num_ntypes}, 1));
  if (in_size != width)
    register_parameter("residual_w", residual_w_,
                       init::xavier_uniform({in_size, width}, 1, gen.next_stream()));
  register_module("linear_k", linear_k_);
  register_module("linear_q", linear_q_);
  register_module("linear_v", linear_v_);
  register_module("linear_a", linear_a_);
  relation_pri_.of_head.resize(num_heads);
  for (Index h = 0; h < num_heads; ++h) {
    relation_pri_.register_parameter(std::to_string(h), relation_pri_.of_head[h],
                                     Tensor::full({num_etypes}, 1));
    relation_att_.emplace_back(head_size, head_size, num_etypes, gen);
    relation_msg_.emplace_back(head_size, head_size, num_etypes, gen);
  }
  register_module("relation_pri", relation_pri_);
  register_module("relation_att", relation_att_);
  register_module("relation_msg", relation_msg_);
  register_module("drop", drop_);
  if (options.use_norm) make_module("norm", norm_, width);
}

Variable HGTConv::matrices_of_heads(const ModuleList<TypedLinear>& heads, bool with_pri) const {
  const Index size = head_size_ * head_size_;
  const auto scale = static_cast<real>(1 / std::sqrt(static_cast<double>(head_size_)));
  std::vector<Variable> matrices;
  for (Index h = 0; h < heads_; ++h) {
    Variable w = reshape(heads[h].weight(), {num_etypes_, size});
    if (with_pri) w = mul(std::move(w), reshape(relation_pri_.of_head[h] * scale, {num_etypes_, 1}));
    matrices.push_back(std::move(w));
  }
  return reshape(concat_columns(matrices), {num_etypes_, heads_, head_size_, head_size_});
}

Variable HGTConv::operator()(const Graph& graph, const Variable& x, const RowIds& ntypes,
                             const EdgeTypes& etypes) {
  return graph.comm().agree([&] {
    require_block(graph, "HGTConv");
    require_rows(x, graph.num_src_nodes(), in_size_, "HGTConv, features");
    require<ShapeError>(ntypes.size() == graph.num_src_nodes(), "HGTConv got ", ntypes.size(),
                        " node types for ", graph.num_src_nodes(), " nodes");
    for (const Index type : ntypes.span())
      require<InputError>(0 <= type && type < num_ntypes_, "HGTConv got the node type ", type, ", there are ",
                          num_ntypes_);
    const EdgeTypes types = etypes.checked(graph.num_edges(), num_etypes_, "HGTConv");
    const Index rows = graph.num_dst_nodes(), width = heads_ * head_size_;
    const Variable mine = dst_rows(graph, x);
    const std::span<const Index> my_types = ntypes.span().first(static_cast<std::size_t>(rows));
    Variable key_value =
        gather_mm(x, concat_columns({linear_k_.weight(), linear_v_.weight()}), ntypes.span());
    Variable y = typed_attention(graph, reshape(std::move(key_value), {x.num_rows(), 2, heads_, head_size_}),
                                 reshape(linear_q_(mine, my_types), {rows, heads_, head_size_}),
                                 matrices_of_heads(relation_att_, true),
                                 matrices_of_heads(relation_msg_, false), types);
    y = linear_a_(reshape(std::exchange(y, {}), {rows, width}), my_types);
    y = drop_(std::exchange(y, {}), graph.dst_ids());
    const Variable self = residual_w_.defined() ? matmul(mine, residual_w_) : mine;
    // a y + (1 - a) self
    const Variable a = gather_shared_rows(reshape(sigmoid(skip_), {num_ntypes_, 1}),
                                          std::vector<Index>(my_types.begin(), my_types.end()));
    y = add(mul(sub(std::exchange(y, {}), self), a), self);
    return norm_ ? (*norm_)(y) : y;
  });
}

SimpleHGNConv::SimpleHGNConv(Index in_feats, Index edge_size, Index head_size, Index num_heads,
                             Index num_etypes, Generator& gen, const SimpleHGNConvOptions& options)
    : AttentionConv("SimpleHGNConv", in_feats, head_size, num_heads, options.feat_drop, options.attn_drop,
                    gen),
      edge_size_(edge_size),
      options_(options) {
  require<InputError>(edge_size > 0 && num_etypes > 0 && options.beta >= 0 && options.beta < 1,
                      "SimpleHGNConv with ", num_etypes, " edge types, rows of ", edge_size,
                      " numbers for them, and beta ", options.beta);
  const auto make = [&](Variable& parameter, const char* name, const Shape& shape) {
    register_parameter(name, parameter, init::xavier_normal(shape, init::relu_gain, gen.next_stream()));
  };
  make(edge_emb_, "edge_emb", {num_etypes, edge_size});
  make(w_, "W", {in_feats, num_heads * head_size});
  make(w_e_, "W_e", {edge_size, num_heads * edge_size});
  make(a_l_, "a_l", {1, num_heads, head_size});
  make(a_r_, "a_r", {1, num_heads, head_size});
  make(a_e_, "a_e", {1, num_heads, edge_size});
  if (options.residual) make_linear(residual_, "residual", in_feats, true, Start::linear, gen);
}

SimpleHGNConv::Projected SimpleHGNConv::project_rows(const Graph& graph, const Variable& x,
                                                     const EdgeTypes& etypes, const Variable& previous,
                                                     bool drops) {
  require_block(graph, "SimpleHGNConv");
  const Shape shape{graph.num_edges(), num_heads(), 1};
  require<ShapeError>(!previous.defined() || previous.shape() == shape,
                      "SimpleHGNConv, coefficients of the layer below have shape ", previous.shape(),
                      ", expected ", shape);
  const Index num_etypes = edge_emb_.num_rows();
  EdgeTypes types = etypes.checked(graph.num_edges(), num_etypes, "SimpleHGNConv");
  Variable z = cut_heads(matmul(ends(graph, x, drops).src, w_));
  Variable score_dst = head_dots(dst_rows(graph, z), a_r_);
  Variable score_type =
      head_dots(reshape(matmul(edge_emb_, w_e_), {num_etypes, num_heads(), edge_size_}), a_e_);
  return {std::move(z), std::move(score_dst), std::move(score_type), std::move(types)};
}

Variable SimpleHGNConv::operator()(const Graph& graph, const Variable& x, const EdgeTypes& etypes,
                                   const Variable& previous) {
  return graph.comm().agree([&] {
    const auto [z, score_dst, score_type, types] = project_rows(graph, x, etypes, previous, true);
    Variable y = typed_gat_attention(graph, z, a_l_, score_dst, score_type, types, options_.negative_slope,
                                     attention_options());
    if (previous.defined() && options_.beta > 0) {
      y = std::exchange(y, {}) * static_cast<real>(1 - options_.beta);
      y = graph.update_all(fn::u_mul_e(z, previous * static_cast<real>(options_.beta)), fn::sum,
                           std::move(y));
    }
    y = join_heads(std::exchange(y, {}));
    if (residual_) y = add(std::exchange(y, {}), (*residual_)(dst_rows(graph, x)));
    return options_.activation ? options_.activation(std::move(y)) : y;
  });
}

Variable SimpleHGNConv::attention(const Graph& graph, const Variable& x, const EdgeTypes& etypes,
                                  const Variable& previous) {
  return graph.comm().agree([&] {
    const auto [z, score_dst, score_type, types] = project_rows(graph, x, etypes, previous, false);
    const Array<std::uint16_t>& numbers = types.numbers();
    Variable scores = graph.apply_edges(fn::u_add_v(head_dots(z, a_l_), score_dst));
    scores = add(std::exchange(scores, {}),
                 gather_shared_rows(score_type, std::vector<Index>(numbers.begin(), numbers.end())));
    scores = leaky_relu(std::exchange(scores, {}), options_.negative_slope);
    Variable alpha = coefficients_of(graph, std::move(scores));
    if (!previous.defined() || options_.beta == 0) return alpha;
    return std::exchange(alpha, {}) * static_cast<real>(1 - options_.beta) +
           previous * static_cast<real>(options_.beta);
  });
}
}}  // namespace sar
