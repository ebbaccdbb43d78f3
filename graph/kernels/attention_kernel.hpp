// SPDX-License-Identifier: MIT

/// Fused attention on one shard: softmax of a score over the in-edges of a node, times the values of the
/// sources.
///
/// Forward, by online softmax, with the largest score so far m, the sum so far z and the factor f = dropout
/// factor * edge weight:
///
///     s_e,h     = score of edge e = (u, v)
///     z         = sum exp(s - m)
///     out[v, h] = sum f_e,h exp(s - m) value[u, h] / z
///
/// z and out are rescaled when m grows. Backward, with the gradient g of out:
///
///     alpha        = exp(s - m - log z)
///     dalpha       = f <g[v, h], value[u, h]>
///     D_v          = <g[v, h], out[v, h]>
///     ds           = alpha (dalpha - D_v)
///     dvalue[u, h] += f alpha g[v, h]
///     df           = alpha <g[v, h], value[u, h]>
///
/// Gradients that are zero for a reason are exactly zero, not what is left of rounding: an optimizer such as
/// Adam would make full steps of it. If the softmax has one term, ds is 0. If all scores of a destination
/// have one sign, leaky_relu is linear there and the term dst[v, h] cancels: AttentionResult::min tells these
/// destinations, for which the caller sets the gradient of dst to 0.
///
/// additive: GAT (gat_attention.cpp). The value is x. The type term is present only if edges have types r.
///
///     el[u, h] = <attn[h], x[u, h]>
///
///     s        = leaky_relu(el[u, h] + dst[v, h] + type_term[r, h])
///
/// The backward pass iterates over the transpose: x_u and its gradient stay in registers while rows of g are
/// gathered. The gradient of dst needs ds by destination. ds is written sequentially for a block of source
/// rows with about six edges per destination; then each destination gathers its values while they are in the
/// cache.
///
/// additive_v2 and dot: GATv2, dot product and AGNN (pair_attention.cpp). The value is x, or for dot with
/// `separate_value` the second part of the source row.
///
///     additive_v2    s = <attn[h], leaky_relu(x[u, h] + dst[v, h])>
///
///     dot            s = c <x[u, h], dst[v, h]>
///
/// where c = scale, divided by max(|x[u, h]|, 1e-12) if `unit_sources`. Scores need rows of both ends. The
/// backward pass iterates over the transpose: rows of dst and g are gathered, and x_u and its gradient stay
/// in the cache. For the gradients by destination it scatters c ds to slots in the order of destinations, for
/// a block of source rows with at most 16 edges per destination. A second pass over the destinations of the
/// block then sums rows of x (dot), or needs only the sign of each column of x + dst, one bit stored beside
/// ds (additive_v2).
///
/// Edges are processed in batches of up to 64, which may span several rows: scores, maxima and exponentials
/// of the whole batch for all heads, then the gathered rows. The last loop that reads rows of a table
/// prefetches the rows of the next batch.
///
/// Gathered bytes per edge, besides index lists:
///
///     additive       forward: a row of x;  backward: a row of g
///     additive_v2    forward: a row of x;  backward: rows of dst and g, and the sign bits twice
///     dot            forward: a row of x;  backward: rows of dst, g and x
///
/// and per head a few values: for additive, el in both passes and four values of the destination (one cache
/// line) backward; for all of them ds, written and read.
///
/// Precision: within a stage, or a block of sources in the backward pass, up to 1,024 terms are summed in
/// `real` and these sums are added in double precision; stages and blocks are added in `real`. A row with
/// more edges is split into parts that run in parallel, each with its own softmax (EdgeParts). The
/// backward pass of additive adds its gradients in `real` throughout.
#pragma once

#include <sar/core/rows/dropout.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// The result, and the statistics that the backward pass reads.
struct AttentionResult {
  Tensor out;      ///< [destinations, heads, dim]; undefined: `rounded` in place of it
  Tensor max;      ///< [destinations, heads]
  Tensor log_sum;  ///< [destinations, heads]; the sum itself until finish()
  /// The smallest score, [destinations, heads], infinity without edges; undefined: it is not wanted. Not for
  /// typed attention.
  Tensor min = {};
  /// `out` in bfloat16. The forward pass can write it if the local shard is its only stage.
  TypedRows rounded = {};

  [[nodiscard]] TypedRows rows() const { return out.defined() ? TypedRows(out) : rounded; }
};

struct AttentionOperands {
  Index heads = 1;
  Index dim = 0;                      ///< columns per head of the result
  Index key_dim = 0;                  ///< columns per head of x; equal to dim unless the value is separate
  bool separate_value = false;        ///< source rows are [heads * key_dim + heads * dim]
  const real* attn = nullptr;         ///< [heads, key_dim]; not for dot
  TypedRows dst = {};  ///< additive: reals [destinations, heads]; others: [.., heads, key_dim], as the rows
  real slope = 0;                     ///< of leaky_relu
  real scale = 1;                     ///< dot
  bool unit_sources = false;          ///< dot
  const real* edge_weight = nullptr;  ///< per local edge; null: 1
  const DropoutMask* mask = nullptr;  ///< null: no dropout
  const Index* edge_ids = nullptr;    ///< original ids per local edge, which key the mask
  const real* bias = nullptr;         ///< [heads, dim], added to the result; null: none
  const real* type_term = nullptr;    ///< additive: [num_types, heads]; null: none
  Index num_types = 0;
  const std::uint16_t* types = nullptr;  ///< with type_term: per local edge
  AttentionResult* result = nullptr;  ///< written by the forward pass, read and emptied by begin_backward()
  TypedRows grad_out = {};            ///< backward: as result->out, of the type of the source rows
  real* grad_dst = nullptr;           ///< backward: as dst, added to; null: not required
  double* grad_attn = nullptr;        ///< backward: as attn, added to; null: not required
  real* grad_edge_weight = nullptr;   ///< backward: per local edge, overwritten; null: not required
  double* grad_type_term = nullptr;   ///< backward: as type_term, added to; null: not required
};

}}  // namespace sar
