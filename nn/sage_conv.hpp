/// GraphSAGE convolution.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/aggregate_cache.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/lstm.hpp>
#include <sar/nn/node_features.hpp>

#include <optional>

namespace sar::inline SAR_PRECISION {

enum class SAGEAggregator {
  mean,  ///< of the in-neighbours
  gcn,   ///< of the in-neighbours and the node itself
  pool,  ///< maximum over the in-neighbours of a layer of their features
  lstm,  ///< last state of an LSTM that reads the in-neighbours by increasing edge id
};

struct SAGEConvOptions {
  SAGEAggregator aggregator = SAGEAggregator::mean;
  double feat_drop = 0;  ///< dropout of the input features
  bool bias = true;
  /// Mean and gcn: keeps the aggregate of constant features (AggregateCache), [local destinations, in_src],
  /// which then always comes before the product. Rows travel in the first call only.
  bool cached = false;
};

/// Hamilton et al., arXiv 1706.02216; as dgl.nn.SAGEConv:
///
///     mean: y_v = W_self x_v + b + W_neigh 1/d_v sum_{u -> v} w_uv x_u
///
///     gcn:  y_v = W_neigh 1/(d_v + 1) (x_v + sum_{u -> v} w_uv x_u) + b
///
///     pool: y_v = W_self x_v + b + W_neigh max_{u -> v} w_uv relu(W_pool x_u + b_pool)
///
///     lstm: y_v = W_self x_v + b + W_neigh LSTM(w_uv x_u for u -> v by increasing edge id)
///
/// d_v counts edges and ignores the optional edge weights w; the aggregate is 0 when d_v = 0. Parameters:
/// fc_neigh.weight [out, in_src]; gcn: bias [out]; others: fc_self.weight [out, in_dst], fc_self.bias [out];
/// pool: fc_pool.weight [in_src, in_src], fc_pool.bias [in_src]; lstm: lstm.* of an LSTM from in_src to
/// in_src features. Weights start Xavier-uniform with ReLU's gain, the bias of gcn at zero, other biases as
/// in Linear.
///
/// Mean and gcn aggregate rows before or after the product with W_neigh, whichever is narrower. They keep the
/// input for the backward pass, and the aggregate where that comes first. A sequence needs all its rows at
/// once: lstm is no sequential aggregation, but fetches and keeps a row, and the gates, for each edge.
/// Collective: one update_all, or apply_edges; cached, one all_reduce from the second call on.
class SAGEConv : public Module {
 public:
  /// Throws InputError unless widths are positive, and equal for gcn, and 0 <= feat_drop < 1; and when cached
  /// with pool, lstm or feat_drop, because their aggregates change.
  SAGEConv(const InFeatures& in_feats, Index out_feats, Generator& gen, const SAGEConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]} ->
  /// [local destinations, out]. edge_weight [local edges] is optional. Throws, the same on every rank,
  /// ShapeError when shapes do not fit; cached, InputError for features or edge weights that want a gradient,
  /// or whose tensor has other values than in the last call.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat,
                                    const Variable& edge_weight = {});
  [[nodiscard]] bool is_cached() const noexcept { return options_.cached; }

 private:
  /// The layer on features after dropout; an undefined dst stands for the first rows of src.
  [[nodiscard]] Variable apply(const GraphShardManager& graph, const Variable& src, const Variable& dst,
                               const Variable& edge_weight);
  /// The aggregate of pool and lstm, and of mean before the product: [local destinations, in_src]. `beside`
  /// is computed while rows travel, but not with lstm.
  [[nodiscard]] Variable aggregate(const GraphShardManager& graph, const Variable& src,
                                   const Variable& edge_weight, FunctionRef<Variable()> beside) const;
  [[nodiscard]] Variable gcn(const GraphShardManager& graph, const Variable& src, const Variable& dst,
                             const Variable& edge_weight);
  /// Whether the product comes before the aggregation.
  [[nodiscard]] bool multiplies_first(const GraphShardManager& graph, const Variable& rows) const;

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

}  // namespace sar
