/// Edge features from the positions of the nodes.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/node_features.hpp>

namespace sar::inline SAR_PRECISION {

/// For positions x [local sources, dim], or {[local sources, dim], [local destinations, dim]}, and each edge
/// u -> v of this rank:
///
///     (x_u - x_v, |x_u - x_v|)        [local edges, dim + 1], in the graph's edge order
///
/// Differentiable in the positions; the slope of a length of 0 is 0. Throws, the same on every rank,
/// ShapeError when shapes do not fit. Collective: one apply_edges.
[[nodiscard]] Variable relative_positions(const GraphShardManager& graph, const NodeFeatures& positions);

}  // namespace sar
