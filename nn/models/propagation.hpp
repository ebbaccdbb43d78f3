// SPDX-License-Identifier: MIT

/// One hop of a fixed operator over a graph, the step of SIGN, label propagation and correct-and-smooth.
#pragma once

#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// How a hop weights the rows of the in-neighbors.
enum class HopNorm {
  symmetric,  ///< S = D_in^-1/2 A D_out^-1/2, as in APPNPConv; degrees count edges and are at least 1
  mean,       ///< D_in^-1 A: mean over the in-edges, 0 without any
};

/// Returns S x for x [local nodes, ...] of a homogeneous graph, in the shape of x. Differentiable.
/// Collective: one update_all. Throws ShapeError on every rank if the number of rows of x does not match, or
/// if sources and destinations of the graph are not the same nodes.
[[nodiscard]] Variable propagate(const Graph& graph, const Variable& x, HopNorm norm = HopNorm::symmetric);
/// Local. Throws ShapeError as propagate().
void require_can_propagate(const Graph& graph, const Variable& x);
}}  // namespace sar
