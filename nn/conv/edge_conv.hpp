// SPDX-License-Identifier: MIT

/// Edge convolution of dynamic graph CNNs.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Wang et al., arXiv 1801.07829; equivalent to dgl.nn.EdgeConv without batch norm:
///
///     y_v = max_{u -> v} theta(x_v - x_u) + phi(x_v)
///
/// A node without in-edges yields 0.
///
/// Parameters, as in Linear: theta.weight and phi.weight [out, in], theta.bias and phi.bias [out]. Because
/// theta is linear, the halo rows are W_theta x_u, and all terms of x_v are added after the maximum.
/// Collective: one update_all.
class EdgeConv : public Module {
 public:
  /// Throws InputError unless widths are positive.
  EdgeConv(Index in_feats, Index out_feats, Generator& gen);

  /// feat [local sources, in] for both ends, or {[local sources, in], [local destinations, in]} -> [local
  /// destinations, out]. Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat) const;

 private:
  Linear theta_, phi_;
};

}}  // namespace sar
