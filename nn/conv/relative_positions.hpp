// SPDX-License-Identifier: MIT

/// Edge features computed from node positions.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the relative position and the distance of both ends of each local edge u -> v. With positions x
/// [local sources, dim], or {[local sources, dim], [local destinations, dim]}:
///
///     d_uv = x_u + s_uv - x_v
///
///     result: (d_uv, |d_uv|)  [local edges, dim + 1], in the graph's edge order
///
/// `shifts` s [local edges, dim], in the same order, select the periodic image of u that an edge comes from:
/// each is an integer combination of the cell vectors. The default is 0. Differentiable in the positions and
/// shifts; the gradient of a zero length is 0. Throws ShapeError on every rank if shapes do not match.
/// Collective: one apply_edges.
[[nodiscard]] Variable relative_positions(const Graph& graph, const NodeFeatures& positions,
                                          const Variable& shifts = {});

/// Returns the shift to the nearest periodic image for each edge, in a periodic box with side lengths L in
/// the unit of the positions:
///
///     s_uv,k = -L_k round((x_uk - x_vk) / L_k)        [local edges, dim], in the graph's edge order
///
/// Use it for graphs that contain each pair of nodes once. If a cutoff exceeds half a side, a node is near
/// several images of another node; the edge list then has one edge per image and must provide the shifts
/// itself. Positions may lie outside the box. Not differentiable. Throws the same exception on every rank:
/// ShapeError if shapes do not match, InputError unless all sides are positive and finite. Collective: one
/// apply_edges.
[[nodiscard]] Tensor minimum_image_shifts(const Graph& graph, const NodeFeatures& positions,
                                          std::span<const double> box);
}}  // namespace sar
