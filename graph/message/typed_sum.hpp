// SPDX-License-Identifier: MIT

/// Sums over in-edges of source rows times the matrix of the edge's type, and attention with such matrices.
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

// Fused attention with a matrix for each type of edge and each head, as HGT's (arXiv 2003.01332).

/// For an edge e = (u, v) of type r and a head h
///
///     out[v, h] = sum over the in-edges of v of  alpha[e, h] value[u, h] msg[r, h]
///
///     alpha = softmax over all in-edges of v, of whatever type, of  key[u, h] att[r, h] query[v, h]^T
///
/// N source rows, M destination rows of this rank, H heads, D features of a head, R types of edges: key_value
/// [N, 2, H, D], the keys and behind them the values; query [M, H, D]; att and msg [R, H, D, D]; types: that
/// of each local edge in the graph's edge order -> [M, H, D]. A destination without in-edges gets 0.
///
/// Kept for the backward pass: the operands, the result, maximum and log(sum) [M, H]. Besides the matrices,
/// no memory grows with the number of edges or types: products of queries, keys and values with a matrix are
/// computed in the cache. Communication: forward one fetch of the source rows, of width 2 H D; backward one
/// push of their gradients, and in mode rematerialize one more fetch. Collective; the same errors on every
/// rank, before rows travel: ShapeError when operands do not fit the graph or each other, InputError for a
/// type that does not exist or when ranks differ.
[[nodiscard]] Variable typed_attention(const Graph& graph, const Variable& key_value, const Variable& query,
                                       const Variable& att, const Variable& msg, const EdgeTypes& types);
}}  // namespace sar
