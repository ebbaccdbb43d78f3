/// Graph isomorphism convolution.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/aggregate_cache.hpp>
#include <sar/nn/node_features.hpp>
#include <sar/nn/row_function.hpp>

namespace sar::inline SAR_PRECISION {

struct GINConvOptions {
  Reduce aggregator = Reduce::sum;  ///< sum, mean, max, or min
  double init_eps = 0;
  bool learn_eps = false;
  /// Keeps the aggregate of constant features (AggregateCache), [local destinations, in]. Rows travel in the
  /// first call only.
  bool cached = false;
};

/// Xu et al., arXiv 1810.00826; as dgl.nn.GINConv:
///
///     y_v = f((1 + eps) x_v + aggregate_{u -> v} w_uv x_u)
///
/// with optional edge weights w and any network f, or none. The aggregate is 0 without in-edges.
///
/// Parameters: eps [1] (a buffer of that name unless learn_eps), and apply_func.*. The self term is computed
/// while the halo rows travel, and the sum goes into its memory. Collective: one update_all; cached, one
/// all_reduce from the second call on.
class GINConv : public Module {
 public:
  explicit GINConv(RowFunction apply_func = {}, const GINConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in], [local destinations, in]} -> [local
  /// destinations, ...]. edge_weight [local edges] is optional. Throws, the same on every rank, ShapeError
  /// when shapes do not fit; cached, InputError for source features or edge weights that want a gradient, or
  /// whose tensor has other values than in the last call.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat,
                                    const Variable& edge_weight = {}) const;
  [[nodiscard]] bool is_cached() const noexcept { return options_.cached; }

 private:
  GINConvOptions options_;
  RowFunction apply_func_;
  Variable eps_;      // learned
  Tensor fixed_eps_;  // or not
  mutable AggregateCache cache_;
};

}  // namespace sar
