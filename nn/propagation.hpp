/// One hop of a fixed operator over a graph: what SIGN, label propagation and correct-and-smooth repeat.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar::inline SAR_PRECISION {

/// How a hop weighs the rows of the in-neighbours.
enum class HopNorm {
  symmetric,  ///< S = D_in^-1/2 A D_out^-1/2, as in APPNPConv; degrees count edges and are at least 1
  mean,       ///< D_in^-1 A: the mean over the in-edges, 0 without any
};

/// S x for x [local nodes, ...] of a homogeneous graph: the same shape. Differentiable. Collective: one
/// update_all. Throws ShapeError, the same on every rank, when x has another number of rows, or sources and
/// destinations of the graph are not the same nodes.
[[nodiscard]] Variable propagate(const GraphShardManager& graph, const Variable& x,
                                 HopNorm norm = HopNorm::symmetric);
/// Throws ShapeError as propagate(). Local.
void require_can_propagate(const GraphShardManager& graph, const Variable& x);

}  // namespace sar
