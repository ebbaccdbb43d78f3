/// Graph convolution of Kipf and Welling.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/aggregate_cache.hpp>
#include <sar/nn/init.hpp>
#include <sar/nn/module.hpp>

namespace sar::inline SAR_PRECISION {

/// By what GraphConv scales rows; d is a number of edges, at least 1, that ignores edge weights.
enum class GraphConvNorm {
  none,
  left,   ///< source rows by 1 / out-degree
  right,  ///< sums by 1 / in-degree
  both,   ///< source rows by 1 / sqrt(out-degree), sums by 1 / sqrt(in-degree)
};

struct GraphConvOptions {
  GraphConvNorm norm = GraphConvNorm::both;
  bool weight = true;  ///< false: no product; in_feats = out_feats
  bool bias = true;
  /// Keeps the sums c_v sum w_uv c_u x_u of constant features (AggregateCache), [local destinations, in],
  /// which then always come before the product. Rows travel in the first call only.
  bool cached = false;
};

/// Kipf & Welling, arXiv 1609.02907; as dgl.nn.GraphConv, but a node without in-edges is no error (it yields
/// b):
///
///     y_v = c_v sum_{u -> v} w_uv c_u x_u W + b
///
/// with c from the norm and optional edge weights w.
///
/// Parameters: weight W [in, out], Xavier-uniform at the start, bias b [out], zero. Rows are aggregated
/// before or after the product with W, whichever is narrower. Collective: one update_all; cached, one
/// all_reduce from the second call on.
class GraphConv : public Module {
 public:
  /// Throws InputError unless widths are positive, and equal when there is no weight.
  GraphConv(Index in_feats, Index out_feats, Generator& gen, const GraphConvOptions& options = {});

  /// feat [local sources, in] -> [local destinations, out]; edge_weight [local edges] is optional. The graph
  /// may be bipartite. Throws ShapeError when shapes do not fit; cached, InputError for features or edge
  /// weights that want a gradient, or whose tensor has other values than in the last call.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const Variable& edge_weight = {}) const;

  /// Source rows are read in one update_all (HeteroGraphConv).
  static constexpr bool reads_rows_once = true;
  [[nodiscard]] bool is_cached() const noexcept { return options_.cached; }

 private:
  Index in_feats_;
  GraphConvOptions options_;
  Variable weight_, bias_;
  mutable AggregateCache cache_;
};

}  // namespace sar
