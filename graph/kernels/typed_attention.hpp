/// Fused attention whose scores and messages go through a matrix for each type of edge and each head (the
/// attention of HGT, arXiv 2003.01332), on one shard. An edge e = (u, v) of type r has, for each head,
///
///     s_e = k_u A_r q_v^T          m_e = v_u M_r          alpha = softmax over all in-edges of v of s
///
///     out_v = sum alpha_e m_e
///
/// k, v and q are rows of `dim` numbers a head. A scale of the scores is in A.
///
///     forward     per destination v and type r that has edges there, a pair: q' = q_v A_r^T, then, as in
///                 attention.hpp, maximum, sum and weighted mean of v_u over the scores <k_u, q'>; the mean
///                 times M_r is merged into out_v, whatever types and stages were before
///     backward    alpha from the saved maximum and log of the sum, ds = alpha (<g_v, m_e> - <g_v, out_v>), in
///                 two passes. Over the pairs of destinations, for the gradient of q: q' as above,
///                 g' = g_v M_r^T, t = sum ds k_u; dq_v += t A_r. Over the pairs of sources: k' = k_u A_r,
///                 v' = v_u M_r, t = sum ds q_v, w = sum alpha g_v; dk_u += t A_r^T, dv_u += w M_r^T,
///                 dA_r += k_u^T t, dM_r += v_u^T w
///
/// Pairs are taken from blocks of rows (edges_by_type.hpp), up to 128 of a type at a time, whose rows are
/// multiplied by the matrices of the type while they are in cache. Nothing has the size of the edges or of
/// all pairs.
///
/// Traffic per edge: forward a row of k and one of v; backward the same once more, and a row of q and one of
/// g; per pair, 2 products with a matrix per head forward, 3 and 6 backward. Sums over the edges of a pair,
/// at most 1,024 of them, are taken in `real`, as those over pairs; a row with more edges is divided into
/// parts. The gradients of the matrices are summed in double precision for at most 32 ranges of source rows,
/// fewer where there are many matrices: the memory is that of so many copies of the matrices in double
/// precision. Results do not depend on the number of threads.
#pragma once

#include <sar/graph/kernels/attention.hpp>

#include <cstdint>
#include <memory>

namespace sar::inline SAR_PRECISION {

struct TypedAttentionOperands {
  Index heads = 1;
  Index dim = 0;                         ///< columns of a head of k, v, q and out
  Index num_types = 1;                   ///< of edges
  const real* query = nullptr;           ///< q [destinations, heads, dim]
  const real* att = nullptr;             ///< A [num_types, heads, dim, dim]
  const real* msg = nullptr;             ///< M, as A
  const std::uint16_t* types = nullptr;  ///< per local edge
  AttentionResult* result = nullptr;  ///< written by the forward pass, read and emptied by begin_backward()
  const real* grad_out = nullptr;     ///< backward: as result->out
  real* grad_query = nullptr;         ///< backward: as query, added to; null: not wanted
  double* grad_att = nullptr;         ///< backward: as att, added to; null: not wanted
  double* grad_msg = nullptr;         ///< backward: as msg, added to; null: not wanted
};

/// Source rows are [k, v]: 2 heads dim columns.
std::unique_ptr<ShardKernel> make_typed_attention_kernel(const TypedAttentionOperands& operands);

}  // namespace sar::inline SAR_PRECISION
