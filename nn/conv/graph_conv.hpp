// SPDX-License-Identifier: MIT

/// Graph convolution of Kipf and Welling (GCN).
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/conv/aggregate_cache.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Scaling of rows in GraphConv. Degrees count edges, ignore edge weights and are at least 1.
enum class GraphConvNorm {
  none,
  left,        ///< source rows by 1 / out-degree
  right,       ///< sums by 1 / in-degree
  both,        ///< source rows by 1 / sqrt(out-degree), sums by 1 / sqrt(in-degree)
  weights,     ///< edge weights as edge_weight_norm(both), like dgl.nn.EdgeWeightNorm; without weights: both
  in_weights,  ///< edge weights as edge_weight_norm(in_weights), like PyG's GCNConv; without weights: weights
               ///< of 1
};

struct GraphConvOptions {
  GraphConvNorm norm = GraphConvNorm::both;
  bool weight = true;  ///< false: no weight matrix; in_feats must equal out_feats
  bool bias = true;
  /// Caches the sums c_v sum w_uv c_u x_u of constant features (AggregateCache), [local destinations, in].
  /// The aggregation then always precedes the product, and halo rows are fetched in the first call only.
  bool cached = false;
};

/// Kipf & Welling, arXiv 1609.02907; equivalent to dgl.nn.GraphConv, but a node without in-edges is allowed
/// (it yields b):
///
///     y_v = c_v sum_{u -> v} w_uv c_u x_u W + b
///
/// with the scales c given by the norm and optional edge weights w. The norms `weights` and `in_weights` keep
/// the normalized weights of graph.edge_weight() with the graph, and normalize other weights in each call.
/// Message flow graphs need the former, kept before they were made (kept_edge_weight_norm). PyG's GCNConv
/// also adds self loops: give the graph self loops of weight 1 for nodes that have none.
///
/// Parameters: weight W [in, out], Xavier-uniform, and bias b [out], zero. The product with W comes before or
/// after the aggregation, whichever makes the aggregated rows narrower. Collective: one update_all; if
/// cached, one all_reduce from the second call on.
///
/// @code
/// GraphConv conv(64, 16, gen);
/// const Variable y = conv(graph, features);
/// @endcode
class GraphConv : public Module {
 public:
  /// Throws InputError unless the widths are positive, and equal if there is no weight.
  GraphConv(Index in_feats, Index out_feats, Generator& gen, const GraphConvOptions& options = {});

  /// feat [local sources, in] -> [local destinations, out]; edge_weight [local edges] is optional. `residual`
  /// from in to out features, unless null, is a residual connection: residual(x_v) is added to y_v, without
  /// memory of its own. The graph may be bipartite; with a residual connection the destinations must be the
  /// first sources. Throws ShapeError if shapes do not match and, if cached, InputError for features or
  /// edge weights that require a gradient or whose values have changed since the previous call.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat,
                                    const Variable& edge_weight = {}, const Linear* residual = nullptr) const;

  /// Source rows are read by one update_all (see HeteroGraphConv).
  static constexpr bool reads_rows_once = true;
  [[nodiscard]] bool is_cached() const noexcept { return options_.cached; }

 private:
  Index in_feats_;
  GraphConvOptions options_;
  Variable weight_, bias_;
  mutable AggregateCache cache_;
};

}}  // namespace sar
