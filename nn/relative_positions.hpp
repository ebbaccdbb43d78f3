/// Edge features from the positions of the nodes.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/node_features.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// For positions x [local sources, dim], or {[local sources, dim], [local destinations, dim]}, and each edge
/// u -> v of this rank:
///
///     d_uv = x_u + s_uv - x_v        (d_uv, |d_uv|)  [local edges, dim + 1], in the graph's edge order
///
/// `shifts` s [local edges, dim], in the same order, say which periodic image of u an edge comes from: an
/// integer combination of the vectors of the cell. Without shifts they are 0. Differentiable in the positions
/// and shifts; the slope of a length of 0 is 0. Throws, the same on every rank, ShapeError when shapes do not
/// fit. Collective: one apply_edges.
[[nodiscard]] Variable relative_positions(const GraphShardManager& graph, const NodeFeatures& positions,
                                          const Variable& shifts = {});

/// The shifts to the nearest image in a periodic box with these lengths of its sides, in the unit of the
/// positions:
///
///     s_uv,k = -L_k round((x_uk - x_vk) / L_k)        [local edges, dim], in the graph's edge order
///
/// For graphs that have each pair once; where a node is near several images of another (a cutoff of more than
/// half a side), the list of pairs has an edge for each, and its shifts. Positions may lie outside of the
/// box. Not differentiable. Throws, the same on every rank, ShapeError when shapes do not fit, InputError
/// unless all sides are positive and finite. Collective: one apply_edges.
[[nodiscard]] Tensor minimum_image_shifts(const GraphShardManager& graph, const NodeFeatures& positions,
                                          std::span<const double> box);

}  // namespace sar
