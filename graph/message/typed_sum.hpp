// SPDX-License-Identifier: MIT

/// Sums over in-edges of source rows times the matrix of the edge's type.
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. out[v] = sum over the in-edges (u, v) of  c_e x[u] W[r_e]
///
/// x [local sources, in]; weight W [types, in, out], or [types, blocks, in / blocks, out / blocks] for
/// block-diagonal matrices; types: r_e, in the graph's order of edges; edge_weight c [local edges, 1],
/// optional -> [local destinations, out]. A `base` of this shape is added if it is defined. Differentiable in
/// x, weight, edge_weight and the base; gradients of weight are those of this rank's edges.
///
/// x is added up per destination and type before it is multiplied, some thousand edges at a time
/// (graph/kernels/typed_sum_kernel.hpp): besides packed copies of W and at most about 16 MB, no memory is
/// taken, whatever the number of edges and types. Communication as update_all: forward one fetch of rows of
/// x; backward one push of their gradients and, in mode rematerialize, one more fetch where weight or
/// edge_weight wants a gradient. Throws, before rows travel and the same on every rank, ShapeError when
/// operands do not fit the graph or each other, InputError for a type that weight does not have, and when
/// ranks differ. As DGL's RelGraphConv: gather_mm on every edge, then a sum.
[[nodiscard]] Variable typed_sum(const Graph& graph, const Variable& x, const Variable& weight,
                                 const EdgeTypes& types, const Variable& edge_weight = {},
                                 Variable base = {});
/// Collective. Starts the same; finish(base) computes.
[[nodiscard]] StartedSum start_typed_sum(const Graph& graph, const Variable& x, const Variable& weight,
                                         const EdgeTypes& types, const Variable& edge_weight = {});
}}  // namespace sar
