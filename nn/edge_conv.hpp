/// Edge convolution of dynamic graph CNNs.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/node_features.hpp>

namespace sar::inline SAR_PRECISION {

/// Wang et al., arXiv 1801.07829; as dgl.nn.EdgeConv without batch norm:
///
///     y_v = max_{u -> v} theta(x_v - x_u) + phi(x_v), 0 without in-edges
///
/// Parameters: theta.{weight [out, in], bias [out]} and phi alike, as in Linear. Because theta is linear, the
/// rows that travel are W_theta x_u, and all terms of x_v stay out of the maximum. Collective: one
/// update_all.
class EdgeConv : public Module {
 public:
  /// Throws InputError unless widths are positive.
  EdgeConv(Index in_feats, Index out_feats, Generator& gen);

  /// feat [local sources, in] for both ends, or {[local sources, in], [local destinations, in]} -> [local
  /// destinations, out]. Throws, the same on every rank, ShapeError when shapes do not fit.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat) const;

 private:
  Linear theta_, phi_;
};

}  // namespace sar
