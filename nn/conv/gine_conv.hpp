// SPDX-License-Identifier: MIT

/// Graph isomorphism convolution with features of the edges (GINE).
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>
#include <sar/nn/modules/row_function.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

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
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats) const;

 private:
  GINEConvOptions options_;
  RowFunction apply_func_;
  std::optional<Linear> lin_edge_;
  Variable eps_;
};

}}  // namespace sar
