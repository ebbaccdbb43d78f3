// SPDX-License-Identifier: MIT
#include <sar/autograd/row_sums.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/simple_hgn_conv.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

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
