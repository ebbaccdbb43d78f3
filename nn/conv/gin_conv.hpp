// SPDX-License-Identifier: MIT

/// Graph isomorphism convolutions: GIN, and GINE with features of the edges.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/conv/aggregate_cache.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

struct GINConvOptions {
  Reduce aggregator = Reduce::sum;  ///< sum, mean, max, or min
  double init_eps = 0;
  bool learn_eps = false;
  /// Caches the aggregate of constant features (AggregateCache), [local destinations, in]. Halo rows are
  /// fetched in the first call only.
  bool cached = false;
};

/// Xu et al., arXiv 1810.00826; equivalent to dgl.nn.GINConv:
///
///     y_v = f((1 + eps) x_v + aggregate_{u -> v} w_uv x_u)
///
/// with optional edge weights w and an optional network f. The aggregate is 0 for a node without in-edges. If
/// x is sparse, the aggregate a sum or mean, and f begins with a Linear, the weight of that is applied before
/// the aggregation.
///
/// Parameters: eps [1], without learn_eps a buffer of the same name, and apply_func.*. The self term is
/// computed while halo rows are in flight and is overwritten by the sum. Collective: one update_all; if
/// cached, one all_reduce from the second call on.
class GINConv : public Module {
 public:
  explicit GINConv(RowFunction apply_func = {}, const GINConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in], [local destinations, in]} -> [local
  /// destinations, ...]. edge_weight [local edges] is optional. Throws the same exception on every rank:
  /// ShapeError if shapes do not match and, if cached, InputError for source features or edge weights that
  /// require a gradient or whose values have changed since the previous call.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_weight = {}) const;
  [[nodiscard]] bool is_cached() const noexcept { return options_.cached; }

 private:
  [[nodiscard]] bool multiplies_first(const Variable& rows) const;

  GINConvOptions options_;
  RowFunction apply_func_;
  Variable eps_;
  mutable AggregateCache cache_;
};

struct GINEConvOptions {
  double init_eps = 0;
  bool learn_eps = false;
};

/// Hu et al., arXiv 1905.12265; equivalent to dgl.nn.GINEConv, with lin_edge to PyG's GINEConv with edge_dim:
///
///     y_v = f((1 + eps) x_v + sum_{u -> v} relu(x_u + e_uv))
///
/// for features e of the edges, or lin_edge(e) in their place, and an optional network f. The sum is 0 for a
/// node without in-edges.
///
/// Parameters: eps [1], without learn_eps a buffer of the same name; apply_func.*; lin_edge.* if there is
/// one. Messages are computed for options().edge_chunk edges at a time. Collective: one update_all.
class GINEConv : public Module {
 public:
  explicit GINEConv(RowFunction apply_func = {}, const GINEConvOptions& options = {});
  /// With lin_edge, a linear layer edge_feats -> in_feats. Throws InputError unless the widths are positive.
  GINEConv(Index in_feats, Index edge_feats, RowFunction apply_func, Generator& gen,
           const GINEConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in], [local destinations, in]}; edge_feats
  /// [local edges, in], with lin_edge [local edges, edge_feats] -> [local destinations, ...]. Throws
  /// ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats) const;

 private:
  GINEConvOptions options_;
  RowFunction apply_func_;
  std::optional<Linear> lin_edge_;
  Variable eps_;
};
}}  // namespace sar
