// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/gin_conv.hpp>

#include <string_view>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Checks features of any width, the same at both ends.
void check_feats(const Graph& graph, const NodeFeatures& feat, std::string_view layer) {
  require_num_rows(feat.src, graph.num_src_nodes(), layer, ", source features");
  if (!feat.pair()) return require_block(graph, layer);
  const Shape expected = feat.src.shape().with_rows(graph.num_dst_nodes());
  require<ShapeError>(feat.dst.shape() == expected, layer, ", destination features have shape ",
                      feat.dst.shape(), ", expected ", expected);
}

/// Returns (1 + eps) x.
Variable scaled_self(const Variable& x, const Variable& eps, bool learn_eps) {
  return learn_eps ? mul(x, eps + 1) : scale_shift(x, 1 + eps.value().item());
}

}  // namespace

GINConv::GINConv(RowFunction apply_func, const GINConvOptions& options)
    : options_(options),
      apply_func_(std::move(apply_func)),
      eps_(Tensor::full({1}, static_cast<real>(options.init_eps)), options.learn_eps),
      cache_(options.cached, "GINConv") {
  register_parameter_or_buffer("eps", eps_, options.learn_eps);
  if (apply_func_) register_module("apply_func", apply_func_.module());
}

Variable GINConv::operator()(const Graph& graph, const NodeFeatures& feat,
                             const Variable& edge_weight) const {
  return graph.comm().agree([&] {
    check_feats(graph, feat, "GINConv");
    const Linear* const fc = multiplies_first(feat.src) ? apply_func_.first_linear() : nullptr;
    const auto product = [&](const Variable& x) {
      return fc != nullptr && x.defined() ? linear(x, fc->weight()) : x;
    };
    const NodeFeatures rows(product(feat.src), product(feat.dst));
    const auto self = [&] { return scaled_self(dst_feats(graph, rows), eps_, options_.learn_eps); };
    const auto start = [&] {
      return graph.start_update_all(message(rows.src, edge_weight), options_.aggregator);
    };
    Variable y;
    if (options_.cached) {
      y = add(self(), cache_(graph, {&feat.src, &edge_weight}, [&] { return start().finish(); }));
    } else {
      StartedSum sum = start();
      y = sum.finish(self());
    }
    if (fc == nullptr) return apply_func_ ? apply_func_(std::exchange(y, {})) : y;
    if (fc->bias().defined()) y = add(std::exchange(y, {}), fc->bias());
    return apply_func_.after_linear(std::exchange(y, {}));
  });
}

/// Sums and means of products are products of sums and means.
bool GINConv::multiplies_first(const Variable& rows) const {
  const bool is_linear = !is_extremum(options_.aggregator);
  return is_linear && !options_.cached && apply_func_ && sparse_matrix(rows) != nullptr;
}

GINEConv::GINEConv(RowFunction apply_func, const GINEConvOptions& options)
    : options_(options),
      apply_func_(std::move(apply_func)),
      eps_(Tensor::full({1}, static_cast<real>(options.init_eps)), options.learn_eps) {
  register_parameter_or_buffer("eps", eps_, options.learn_eps);
  if (apply_func_) register_module("apply_func", apply_func_.module());
}

GINEConv::GINEConv(Index in_feats, Index edge_feats, RowFunction apply_func, Generator& gen,
                   const GINEConvOptions& options)
    : GINEConv(std::move(apply_func), options) {
  lin_edge_.emplace(edge_feats, in_feats, gen);
  register_module("lin_edge", *lin_edge_);
}

Variable GINEConv::operator()(const Graph& graph, const NodeFeatures& feat,
                              const Variable& edge_feats) const {
  return graph.comm().agree([&] {
    check_feats(graph, feat, "GINEConv");
    require_num_rows(edge_feats, graph.num_edges(), "GINEConv, edge features");
    const Index width = lin_edge_ ? lin_edge_->weight().shape()[1] : feat.src.shape().row_size();
    require<ShapeError>(edge_feats.shape().row_size() == width, "GINEConv, edge features have shape ",
                        edge_feats.shape(), ", expected rows of ", width);
    const Variable x = dst_feats(graph, feat);
    // the backward pass calls it again, when the layer may be gone
    const Variable weight = lin_edge_ ? lin_edge_->weight() : Variable(),
                   bias = lin_edge_ ? lin_edge_->bias() : Variable();
    const auto message = [source = feat.src, edge_feats, weight, bias](const EdgeBatch& edges) {
      const Variable e = edges.edata(edge_feats);
      return relu(edges.src(source) + (weight.defined() ? linear(e, weight, bias) : e));
    };
    Variable y = scaled_self(x, eps_, options_.learn_eps);
    y = add(std::move(y), graph.update_all(MessageFunction(message), Reduce::sum));
    return apply_func_ ? apply_func_(std::move(y)) : y;
  });
}
}}  // namespace sar
