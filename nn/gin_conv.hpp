/// Graph isomorphism convolution.
#pragma once

#include <sar/graph/graph_shard_manager.hpp>
#include <sar/nn/row_function.hpp>

#include <utility>

namespace sar {

struct GINConvOptions {
  Reduce aggregator = Reduce::sum;  ///< sum, mean, max, or min
  double init_eps = 0;
  bool learn_eps = false;
};

/// y_v = f((1 + eps) x_v + aggregate_{u -> v} w_uv x_u)  with optional edge weights w and any network f, or
/// none: Xu et al., arXiv 1810.00826; as dgl.nn.GINConv. The aggregate is 0 without in-edges.
///
/// Parameters: eps [1] (a buffer of that name unless learn_eps), and apply_func.*. The self term is computed
/// while the halo rows travel, and the sum goes into its memory. Collective: one update_all.
class GINConv : public Module {
 public:
  explicit GINConv(RowFunction apply_func = {}, const GINConvOptions& options = {});

  /// feat [local sources, in] gives both ends: the destinations are the first rows of the sources. Returns
  /// [local destinations, ...]. edge_weight [local edges] is optional. Throws ShapeError when shapes do not
  /// fit, or when the graph's destinations are nodes of another kind.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const Variable& edge_weight = {}) const;
  /// feat: features of the sources and of the destinations, equally wide.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const std::pair<Variable, Variable>& feat,
                                    const Variable& edge_weight = {}) const;

 private:
  GINConvOptions options_;
  RowFunction apply_func_;
  Variable eps_;      // learned
  Tensor fixed_eps_;  // or not
};

}  // namespace sar
