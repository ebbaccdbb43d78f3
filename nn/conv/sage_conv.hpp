// SPDX-License-Identifier: MIT

/// GraphSAGE convolution.
///
/// Room nn/conv: The graph convolutions, those of a kind in one file.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/conv/aggregate_cache.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/lstm.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

enum class SAGEAggregator {
  mean,  ///< mean of the in-neighbors
  gcn,   ///< mean of the in-neighbors and the node itself
  pool,  ///< maximum over the in-neighbors of relu(W_pool x + b_pool)
  lstm,  ///< last state of an LSTM that reads the in-neighbors by increasing edge id
};

struct SAGEConvOptions {
  SAGEAggregator aggregator = SAGEAggregator::mean;
  double feat_drop = 0;  ///< dropout of the input features
  bool bias = true;
  /// For mean and gcn: caches the aggregate of constant features (AggregateCache), [local destinations,
  /// in_src]. The aggregation then always precedes the product, and halo rows are fetched in the first call
  /// only.
  bool cached = false;
};

/// Hamilton et al., arXiv 1706.02216; equivalent to dgl.nn.SAGEConv:
///
///     mean: y_v = W_self x_v + b + W_neigh 1/d_v sum_{u -> v} w_uv x_u
///
///     gcn:  y_v = W_neigh 1/(d_v + 1) (x_v + sum_{u -> v} w_uv x_u) + b
///
///     pool: y_v = W_self x_v + b + W_neigh max_{u -> v} w_uv relu(W_pool x_u + b_pool)
///
///     lstm: y_v = W_self x_v + b + W_neigh LSTM(w_uv x_u for u -> v by increasing edge id)
///
/// d_v is the number of in-edges and ignores the optional edge weights w; the aggregate is 0 if d_v = 0.
/// Parameters: fc_neigh.weight [out, in_src]; for gcn, bias [out]; for the other aggregators, fc_self.weight
/// [out, in_dst] and fc_self.bias [out]; for pool, fc_pool.weight [in_src, in_src] and fc_pool.bias [in_src];
/// for lstm, lstm.* of an LSTM from in_src to in_src features. Weights are Xavier-uniform with the gain of
/// ReLU, the bias of gcn is zero, other biases are initialized as in Linear.
///
/// Mean and gcn apply W_neigh before or after the aggregation, whichever makes the aggregated rows narrower.
/// The backward pass keeps the input, and also the aggregate if the aggregation comes first. The LSTM needs
/// all rows of a sequence at once: it fetches all halo rows at a time and keeps a row and the gates of each
/// edge. Collective: one update_all, or apply_edges for lstm; if cached, one all_reduce from the second call
/// on.
///
/// @code
/// SAGEConv conv(64, 16, gen, {.aggregator = SAGEAggregator::mean});
/// const Variable y = conv(graph, features);  // [local sources, 64] -> [local destinations, 16]
/// @endcode
class SAGEConv : public Module {
 public:
  /// Throws InputError unless the widths are positive, equal for gcn, and 0 <= feat_drop < 1. Also throws if
  /// cached with pool, lstm or feat_drop, whose aggregates change from call to call.
  SAGEConv(const InFeatures& in_feats, Index out_feats, Generator& gen, const SAGEConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]} ->
  /// [local destinations, out]. edge_weight [local edges] is optional. `residual` from in_dst to out
  /// features, unless null, is a residual connection: residual(x_v) is added to y_v; where there is a W_self,
  /// x_v is multiplied by the sum of both weights. Throws the same exception on every rank: ShapeError if
  /// shapes do not match and, if cached, InputError for features or edge weights that require a gradient or
  /// whose values have changed since the previous call.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_weight = {}, const Linear* residual = nullptr);
  [[nodiscard]] bool is_cached() const noexcept { return options_.cached; }

 private:
  /// Starts the aggregate of pool, and of mean if it precedes the product: [local destinations, in_src].
  [[nodiscard]] StartedSum start_aggregate(const Graph& graph, const Variable& src,
                                           const Variable& edge_weight) const;
  /// Returns the aggregate of lstm: [local destinations, in_src].
  [[nodiscard]] Variable lstm_aggregate(const Graph& graph, const Variable& src,
                                        const Variable& edge_weight) const;
  /// Applies the gcn aggregator to features after dropout. An undefined dst means the first rows of src.
  [[nodiscard]] Variable gcn(const Graph& graph, const Variable& src, const Variable& dst,
                             const Variable& edge_weight);
  /// Returns whether the product comes before the aggregation.
  [[nodiscard]] bool multiplies_first(const Graph& graph, const Variable& rows) const;

  SAGEConvOptions options_;
  InFeatures in_feats_;
  Dropout feat_drop_;
  Linear fc_neigh_;
  std::optional<Linear> fc_self_;  // all but gcn
  std::optional<Linear> fc_pool_;  // pool
  std::optional<LSTM> lstm_;       // lstm
  Variable bias_;                  // gcn
  AggregateCache cache_;
};

}}  // namespace sar
