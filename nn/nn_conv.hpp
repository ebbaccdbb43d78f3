/// Convolution whose matrices are computed from the edges.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/node_features.hpp>
#include <sar/nn/row_function.hpp>

#include <optional>

namespace sar::inline SAR_PRECISION {

struct NNConvOptions {
  Reduce aggregator = Reduce::mean;  ///< sum, mean, max, or min
  bool residual = false;
  bool bias = true;
};

/// Gilmer et al., arXiv 1704.01212; as dgl.nn.NNConv:
///
///     y_v = aggregate_{u -> v} x_u W(e) + b  (+ res(x_v)),  W(e) = f(e) as a matrix [in, out]
///
/// Max and min are taken of the products x_ui W_io before the sum over i.
///
/// Parameters: bias b [out], zero at the start; edge_func.*, those of f; with residual and in_dst different
/// from out, res_fc.weight [out, in_dst], Xavier-normal with ReLU's gain (otherwise res is the identity).
/// The matrices of options().edge_block edges exist at a time. Collective: one update_all.
class NNConv : public Module {
 public:
  /// edge_func maps edge features to rows of in_src * out values. Throws InputError unless widths are
  /// positive and there is an edge_func.
  NNConv(const InFeatures& in_feats, Index out_feats, RowFunction edge_func, Generator& gen,
         const NNConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]};
  /// edge_feats [local edges, ...] -> [local destinations, out]. Throws, the same on every rank, ShapeError
  /// when shapes do not fit.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats) const;

 private:
  InFeatures in_feats_;
  Index out_feats_;
  RowFunction edge_func_;
  NNConvOptions options_;
  Variable bias_;
  std::optional<Linear> res_fc_;
};

}  // namespace sar
