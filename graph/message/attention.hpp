// SPDX-License-Identifier: MIT

/// Fused attention: out[v, h] = sum over in-edges (u, v) of  alpha[e, h] value[u, h], with
/// alpha = softmax over the in-edges of v of a score s[e, h], without anything of the size of the edges in
/// memory.
///
/// Forward, a destination's running maximum, sum and result go from stage to stage (online softmax, arXiv
/// 1805.02867). Kept for the backward pass: the operands, the result, maximum and log(sum) [local
/// destinations, H]. Backward, scores are computed again from source rows that are fetched again (kept in
/// modes sequential and one_shot). N source rows, M destination rows of this rank, H heads, D features of a
/// head. A destination without in-edges gets 0. Communication: forward one fetch of the source rows; backward
/// one push of their gradients, and in mode rematerialize one more fetch. All functions here are collective;
/// the same errors on every rank, before rows travel: ShapeError when operands do not fit the graph or each
/// other, InputError when ranks differ.
#pragma once

#include <sar/core/random.hpp>
#include <sar/graph/kernels/message_op.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

// Softmax over the edges of a node.

/// Collective. y_e = exp(x_e - m) / sum exp(x_e' - m), over the edges e' that share e's destination
/// (source), m their maximum over all its edges; each column by itself. x [local edges, ...], as
/// dgl.nn.functional.edge_softmax. If all x_e' are -infinity, y_e is 0, here and in the functions below.
/// Gradient y (g - sum(g y)); keeps y. Communication: none for dst; for src, the halo rows' maxima and sums
/// [halo rows, ...] travel to the owners and back. Throws, the same on every rank, ShapeError for another
/// number of rows than local edges.
[[nodiscard]] Variable edge_softmax(const Graph& graph, const Variable& x, NormBy norm_by = NormBy::dst);

struct AttentionOptions {
  /// Each coefficient alpha[e, h] becomes 0 with this probability and is divided by 1 - p otherwise. Drawn
  /// from (dropout_key, global edge id, h), and drawn again in the backward pass.
  double dropout = 0;
  RandomKey dropout_key;
  /// [local edges] or [local edges, 1]: multiplies alpha after the softmax (and dropout). Optional.
  Variable edge_weight = {};
  /// H D numbers in any shape, added to the result in its memory, also where there are no in-edges. Optional.
  Variable bias = {};
};

/// GAT (arXiv 1710.10903): s = leaky_relu(<attn_src[h], x[u, h]> + score_dst[v, h]); the value is x[u, h].
/// x [N, H, D], attn_src [1, H, D], score_dst [M, H] or [M, H, 1] -> [M, H, D]. Rows of width H D travel.
[[nodiscard]] Variable gat_attention(const Graph& graph, const Variable& x, const Variable& attn_src,
                                     const Variable& score_dst, real negative_slope = real(0.2),
                                     const AttentionOptions& options = {});

/// GAT with edge types r, as in SimpleHGN (KDD 2021):
///
///     s = leaky_relu(<attn_src[h], x[u, h]> + score_dst[v, h] + score_type[r, h])
///
/// score_type: [R, H]; types: the type of each local edge, in the graph's edge order; otherwise as
/// gat_attention. Also throws InputError for a type that does not exist.
[[nodiscard]] Variable typed_gat_attention(const Graph& graph, const Variable& x, const Variable& attn_src,
                                           const Variable& score_dst, const Variable& score_type,
                                           const EdgeTypes& types, real negative_slope = real(0.2),
                                           const AttentionOptions& options = {});

/// GATv2 (arXiv 2105.14491): s = <attn[h], leaky_relu(x_src[u, h] + x_dst[v, h])>; the value is x_src[u, h].
/// x_src [N, H, D], x_dst [M, H, D], attn [1, H, D] -> [M, H, D].
[[nodiscard]] Variable gatv2_attention(const Graph& graph, const Variable& x_src, const Variable& x_dst,
                                       const Variable& attn, real negative_slope = real(0.2),
                                       const AttentionOptions& options = {});

/// Dot product: s = scale <key[u, h], query[v, h]>. key [N, H, D], query [M, H, D], value [N, H, D'], or
/// undefined: the key -> [M, H, D']. Rows of width H (D + D') (H D without a value) travel.
[[nodiscard]] Variable dot_attention(const Graph& graph, const Variable& key, const Variable& query,
                                     const Variable& value, real scale, const AttentionOptions& options = {});

/// AGNN (arXiv 1803.03735): s = beta <x_src[u], x_dst[v]> / (|x_src[u]| |x_dst[v]|), norms at least 1e-12;
/// the value is x_src[u]. One head: x_src [N, D], x_dst [M, D], beta [1] -> [M, D].
[[nodiscard]] Variable cosine_attention(const Graph& graph, const Variable& x_src, const Variable& x_dst,
                                        const Variable& beta, const AttentionOptions& options = {});
}}  // namespace sar
