// SPDX-License-Identifier: MIT

/// Fused attention with a matrix per edge type and head for scores and messages (the attention of HGT, arXiv
/// 2003.01332), on one shard. For an edge e = (u, v) of type r and each head:
///
///     s_e = k_u A_r q_v^T          m_e = v_u M_r          alpha = softmax over all in-edges of v of s
///
///     out_v = sum alpha_e m_e
///
/// k, v and q are rows of `dim` values per head. A is already multiplied by the scale of the scores.
///
/// A pair is a row and a type of its edges. Forward, for each pair of a destination v and a type r:
///
///     q' = q_v A_r^T
///
/// then, as in attention_kernel.hpp, maximum, sum and weighted mean of v_u over the scores <k_u, q'>. The
/// mean times M_r is merged into out_v with the results of other types and stages.
///
/// Backward, from the saved maximum and log of the sum, with the gradient g of out:
///
///     alpha = exp(s - max - log sum)        ds = alpha (<g_v, m_e> - <g_v, out_v>)
///
/// A pass over the pairs of destinations computes the gradient of q:
///
///     q'    = q_v A_r^T        g' = g_v M_r^T        t = sum ds k_u
///     dq_v += t A_r
///
/// A pass over the pairs of sources computes all other gradients:
///
///     k'    = k_u A_r        v' = v_u M_r        t = sum ds q_v        w = sum alpha g_v
///     dk_u += t A_r^T        dv_u += w M_r^T        dA_r += k_u^T t        dM_r += v_u^T w
///
/// Pairs come from blocks of rows (EdgesByType). Up to 128 pairs of a type are multiplied by the type's
/// matrices at a time, while they are in the cache. No buffer grows with the number of edges or of all pairs.
///
/// Gathered per edge: forward a row of k and a row of v; backward the same again, and a row of q and a row of
/// g. Products with a matrix per pair and head: 2 forward, 3 backward by destination and 6 by source. Sums
/// over the edges of a pair, at most 1,024 of them, and over pairs are taken in `real`; a row with more edges
/// is split into parts. The gradients of the matrices are summed in double precision for at most 32 ranges of
/// source rows, fewer if there are many matrices, because each range has a copy of all matrices in double
/// precision. Results do not depend on the number of threads.
#pragma once

#include <sar/graph/kernels/attention_kernel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

struct TypedAttentionOperands {
  Index heads = 1;
  Index dim = 0;                         ///< columns per head of k, v, q and out
  Index num_types = 1;                   ///< number of edge types
  const real* query = nullptr;           ///< q [destinations, heads, dim]
  const real* att = nullptr;             ///< A [num_types, heads, dim, dim]
  const real* msg = nullptr;             ///< M, as A
  const std::uint16_t* types = nullptr;  ///< per local edge
  AttentionResult* result = nullptr;  ///< written by the forward pass, read and emptied by begin_backward()
  const real* grad_out = nullptr;     ///< backward: as result->out
  real* grad_query = nullptr;         ///< backward: as query, added to; null: not required
  double* grad_att = nullptr;         ///< backward: as att, added to; null: not required
  double* grad_msg = nullptr;         ///< backward: as msg, added to; null: not required
};

/// Creates the kernel. Source rows are [k, v]: 2 heads dim columns.
std::unique_ptr<ShardKernel> make_typed_attention_kernel(const TypedAttentionOperands& operands);

}}  // namespace sar
