// SPDX-License-Identifier: MIT

// Destinations that are the first rows of the sources share one projection: their rows are a view of it. A
// linear map per head is a product per head, on a copy of the head's columns of x. weighted_edge_sums() is
// a user-defined message: products of coefficients and edge rows exist for a chunk of edges at a time.
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/attention_conv.hpp>

#include <cmath>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

AttentionConv::AttentionConv(std::string name, const InFeatures& in_feats, Index out_feats, Index num_heads,
                             double feat_drop, double attn_drop, Generator& gen)
    : in_feats_(in_feats),
      name_(std::move(name)),
      out_feats_(out_feats),
      heads_(num_heads),
      feat_drop_(feat_drop, gen),
      attn_drop_(attn_drop, gen) {
  require<InputError>(in_feats.src > 0 && in_feats.dst > 0 && out_feats > 0 && num_heads > 0, name_, " from ",
                      in_feats.src, " and ", in_feats.dst, " features to ", num_heads, " heads of ",
                      out_feats);
  register_module("feat_drop", feat_drop_);
  register_module("attn_drop", attn_drop_);
}

AttentionConv::Ends AttentionConv::ends(const Graph& graph, const NodeFeatures& feat, bool drops,
                                        const Variable& edge_feats, Index edge_width) {
  require_feats(graph, feat, in_feats_, name_);
  if (edge_width > 0) require_rows(edge_feats, graph.num_edges(), edge_width, name_ + ", edge features");
  require<ShapeError>(edge_width > 0 || !edge_feats.defined(), name_,
                      " without edge features got some of shape ", edge_feats.shape());
  const Variable src = drops ? feat_drop_(feat.src, graph.src_ids()) : feat.src;
  if (!feat.pair()) return {src, dst_rows(graph, src), true};
  return {src, drops ? feat_drop_(feat.dst, graph.dst_ids()) : feat.dst, false};
}

Variable AttentionConv::cut_heads(Variable x) const {
  const Shape shape{x.num_rows(), heads_, out_feats_};
  return reshape(std::move(x), shape);
}

Variable AttentionConv::join_heads(Variable x) const {
  const Shape shape{x.num_rows(), heads_ * out_feats_};
  return reshape(std::move(x), shape);
}

void AttentionConv::make_linear(std::optional<Linear>& fc, const char* name, Index in, bool bias, Start start,
                                Generator& gen) {
  make_module(name, fc, in, heads_ * out_feats_, gen, bias);
  if (start == Start::xavier) start_xavier(*fc, gen);
}

void AttentionConv::make_projection(Projection& projection, Start start, Generator& gen) {
  const bool pair = in_feats_.pair;
  make_linear(projection.src, pair ? "fc_src" : "fc", in_feats_.src, false, start, gen);
  if (pair) make_linear(projection.dst, "fc_dst", in_feats_.dst, false, start, gen);
}

AttentionConv::Ends AttentionConv::project(const Graph& graph, const Ends& ends,
                                           const Projection& projection) const {
  const auto& [fc_src, fc_dst] = projection;
  const auto cut = [&](const Linear& fc, const Variable& x, bool recomputes) {
    return recomputes && mixed_precision() ? fc.recomputed(x, {x.num_rows(), heads_, out_feats_})
                                           : cut_heads(fc(x));
  };
  if (!ends.shared || fc_dst)
    return {cut(*fc_src, ends.src, true), cut(fc_dst ? *fc_dst : *fc_src, ends.dst, true), false};
  const Index rows = ends.dst.num_rows();
  const Variable z =
      cut(*fc_src, ends.src, rows == ends.src.num_rows());  // a part of it would stay in memory
  return {z, dst_rows(graph, z), true};
}

Variable AttentionConv::add_residual(Variable y, const Variable& x, const std::optional<Linear>& fc) const {
  if (!fc) return add(std::move(y), cut_heads(x));
  y = cut_heads(add_linear(join_heads(std::move(y)), x, fc->weight()));
  return fc->bias().defined() ? add(std::move(y), reshape(fc->bias(), {heads_, out_feats_})) : y;
}

AttentionOptions AttentionConv::attention_options(Variable edge_weight) {
  AttentionOptions options;
  if (attn_drop_.is_active()) {
    options.dropout = attn_drop_.p();
    options.dropout_key = attn_drop_.next_call();
  }
  options.edge_weight = std::move(edge_weight);
  return options;
}

Variable AttentionConv::drop_attention(const Graph& graph, Variable coefficients) {
  if (!attn_drop_.is_active()) return coefficients;
  return attn_drop_(std::move(coefficients), graph.edge_ids());
}

void AttentionConv::make_head_vector(const char* name, Variable& parameter, Generator& gen) {
  const Shape shape{1, heads_, out_feats_};
  register_parameter(name, parameter, init::xavier_normal(shape, init::relu_gain, gen.next_stream()));
}

Variable AttentionConv::coefficients_of(const Graph& graph, Variable scores) const {
  return reshape(edge_softmax(graph, std::move(scores)), {graph.num_edges(), heads_, 1});
}

real AttentionConv::dot_scale() const {
  return static_cast<real>(1 / std::sqrt(static_cast<double>(out_feats_)));
}

void AttentionConv::start_xavier(const Linear& fc, Generator& gen) {
  start_weight(fc, init::xavier_normal(fc.weight().shape(), init::relu_gain, gen.next_stream()));
  if (fc.bias().defined()) Variable(fc.bias()).value().fill(0);
}

namespace {

/// Applies map(x_h [n, ...], W_h) to every head and puts the results side by side.
template <class Map>
Variable for_heads(const Variable& x, const Variable& weight, const Map& map) {
  const Index n = x.shape()[0], heads = x.shape()[1], columns = x.shape()[2];
  const Index rows = weight.shape()[0] / heads;
  const Variable flat = reshape(x, {n, heads * columns});
  std::vector<Variable> parts;
  for (Index h = 0; h < heads; ++h)
    parts.push_back(map(slice_columns(flat, h * columns, (h + 1) * columns),
                        slice_rows(weight, h * rows, (h + 1) * rows)));
  const Index out = parts.front().shape()[1];
  return reshape(concat_columns(parts), {n, heads, out});
}

}  // namespace

Variable head_linear(const Variable& x, const Variable& weight) {
  return for_heads(x, weight,
                   [](Variable part, Variable w) { return linear(std::move(part), std::move(w)); });
}

Variable head_linear_transposed(const Variable& x, const Variable& weight) {
  return for_heads(x, weight,
                   [](Variable part, Variable w) { return matmul(std::move(part), std::move(w)); });
}

Variable weighted_edge_sums(const Graph& graph, const Variable& coefficients, const Variable& x) {
  return graph.comm().agree([&] {
    const Variable rows = reshape(x, {x.num_rows(), 1, x.shape()[1]});
    return graph.update_all(
        [=](const EdgeBatch& edges) { return edges.edata(coefficients) * edges.edata(rows); }, fn::sum);
  });
}
}}  // namespace sar
