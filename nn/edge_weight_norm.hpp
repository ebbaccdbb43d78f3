/// Normalisation of edge weights.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar::inline SAR_PRECISION {

/// Sums of the weights of the edges that leave a source, and that reach a destination.
struct WeightSums {
  Variable out;  ///< [local sources, 1]
  Variable in;   ///< [local destinations, 1]
};

/// edge_weight [local edges] or [local edges, 1], positive. Differentiable. Collective: one number per halo
/// row travels, and its gradient. Throws, the same on every rank, ShapeError when shapes do not fit,
/// InputError when a weight is not positive.
[[nodiscard]] WeightSums weight_sums(const GraphShardManager& graph, const Variable& edge_weight);

/// 1 / sqrt(sum); 1 where there is no edge.
[[nodiscard]] Variable inverse_root(const Variable& weight_sum);

enum class EdgeNorm {
  right,  ///< by the in-weight of the destination
  both,   ///< by the roots of the out-weight of the source and of the in-weight of the destination
};

/// Edge weights that sum up to one, as dgl.nn.EdgeWeightNorm:
///
///     right: w_uv / sum_{u'} w_u'v        both: w_uv / sqrt(sum_{v'} w_uv' sum_{u'} w_u'v)
///
/// edge_weight and errors as above; the result has its shape. Differentiable. Collective.
[[nodiscard]] Variable edge_weight_norm(const GraphShardManager& graph, const Variable& edge_weight,
                                        EdgeNorm norm = EdgeNorm::both);

}  // namespace sar
