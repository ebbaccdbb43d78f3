// SPDX-License-Identifier: MIT

/// Convolution with a weight matrix computed for each edge.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>
#include <sar/nn/modules/row_function.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

struct NNConvOptions {
  Reduce aggregator = Reduce::mean;  ///< sum, mean, max, or min
  bool residual = false;
  bool bias = true;
};

/// Gilmer et al., arXiv 1704.01212; equivalent to dgl.nn.NNConv:
///
///     y_v = aggregate_{u -> v} x_u W(e) + b  (+ res(x_v))
///
/// where W(e) is f(e) as a matrix [in, out].
///
/// For max and min, the products x_ui W_io are reduced before the sum over i.
///
/// Parameters: bias b [out], zero; edge_func.*, the parameters of f; with a residual and in_dst != out,
/// res_fc.weight [out, in_dst], Xavier-normal with the gain of ReLU (otherwise res is the identity). Matrices
/// are computed for options().edge_chunk edges at a time. Collective: one update_all.
class NNConv : public Module {
 public:
  /// edge_func maps edge features to rows of in_src * out values. Throws InputError unless the widths are
  /// positive and there is an edge_func.
  NNConv(const InFeatures& in_feats, Index out_feats, RowFunction edge_func, Generator& gen,
         const NNConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]};
  /// edge_feats [local edges, ...] -> [local destinations, out]. Throws ShapeError on every rank if shapes do
  /// not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats) const;

 private:
  InFeatures in_feats_;
  Index out_feats_;
  RowFunction edge_func_;
  NNConvOptions options_;
  Variable bias_;
  std::optional<Linear> res_fc_;
};

}}  // namespace sar
