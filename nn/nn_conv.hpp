/// Convolution whose matrices are computed from the edges.
#pragma once

#include <sar/graph/graph_shard_manager.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/row_function.hpp>

#include <optional>
#include <utility>

namespace sar {

struct NNConvOptions {
  Reduce aggregator = Reduce::mean;  ///< sum, mean, max, or min
  bool residual = false;
  bool bias = true;
};

/// y_v = aggregate_{u -> v} x_u W(e) + b  (+ res(x_v)),  W(e) = f(e) as a matrix [in, out]: Gilmer et al.,
/// arXiv 1704.01212; as dgl.nn.NNConv. Max and min are taken of the products x_ui W_io before the sum over i.
///
/// Parameters: bias b [out], zero at the start; edge_func.*, those of f; with residual and in_dst different
/// from out, res_fc.weight [out, in_dst], Xavier-uniform with ReLU's gain (otherwise res is the identity).
/// The matrices of options().edge_block edges exist at a time. Collective: one update_all.
class NNConv : public Module {
 public:
  /// edge_func maps edge features to rows of in_feats.first * out_feats values. in_feats: widths at the
  /// source and at the destination. Throws InputError unless widths are positive and there is an edge_func.
  NNConv(std::pair<Index, Index> in_feats, Index out_feats, RowFunction edge_func, Generator& gen,
         const NNConvOptions& options = {});
  NNConv(Index in_feats, Index out_feats, RowFunction edge_func, Generator& gen,
         const NNConvOptions& options = {})
      : NNConv({in_feats, in_feats}, out_feats, std::move(edge_func), gen, options) {}

  /// feat [local sources, in] gives both ends: the destinations are the first rows of the sources.
  /// edge_feats [local edges, ...]. Returns [local destinations, out]. Throws ShapeError when shapes do not
  /// fit, or when the graph's destinations are nodes of another kind.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const Variable& edge_feats) const;
  /// feat: features of the sources and of the destinations.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const std::pair<Variable, Variable>& feat,
                                    const Variable& edge_feats) const;

 private:
  std::pair<Index, Index> in_feats_;
  Index out_feats_;
  RowFunction edge_func_;
  NNConvOptions options_;
  Variable bias_;
  std::optional<Linear> res_fc_;
};

}  // namespace sar
