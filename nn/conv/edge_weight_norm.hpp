/// Normalization of edge weights.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Sums of edge weights over the out-edges of each source and over the in-edges of each destination.
struct WeightSums {
  Variable out;  ///< [local sources, 1]
  Variable in;   ///< [local destinations, 1]
};

/// Sums positive edge weights [local edges] or [local edges, 1] at both ends. Differentiable. Collective:
/// sends one value per halo row, and one gradient per halo row in the backward pass. Throws the same
/// exception on every rank: ShapeError if shapes do not match, InputError if a weight is not positive.
[[nodiscard]] WeightSums weight_sums(const GraphShardManager& graph, const Variable& edge_weight);

/// Returns 1 / sqrt(sum), and 1 where there is no edge.
[[nodiscard]] Variable inverse_root(const Variable& weight_sum);

enum class EdgeNorm {
  right,  ///< divide by the sum of the destination's in-weights
  both,   ///< divide by the roots of the source's out-weight sum and the destination's in-weight sum
};

/// Returns normalized edge weights, as dgl.nn.EdgeWeightNorm:
///
///     right: w_uv / sum_{u'} w_u'v
///
///     both:  w_uv / sqrt(sum_{v'} w_uv' sum_{u'} w_u'v)
///
/// The result has the shape of edge_weight; arguments and errors are those of weight_sums. Differentiable.
/// Collective.
[[nodiscard]] Variable edge_weight_norm(const GraphShardManager& graph, const Variable& edge_weight,
                                        EdgeNorm norm = EdgeNorm::both);

}}  // namespace sar
