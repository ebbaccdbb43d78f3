// SPDX-License-Identifier: MIT

/// All built-in messages with all reductions, fused: no message is stored per edge.
///
///     forward     m_e    = lhs op rhs                                   for the edge e = (u, v)
///                 out[v] = reduce over the in-edges e of v of m_e       or out[e] = m_e
///
///     backward    gm_e   = s_v g[v]        sum, mean
///                 gm_e   = g[v]            max, min, where e is the argmax; otherwise 0
///                 gm_e   = g[e]            a result per edge
///                 dx[u], dx[v], dx[e] = sum of the gradients of m_e over the edges of u, of v, or at e
///
/// s_v is 1 or 1 / in-degree(v), which the caller multiplies into g. The backward pass iterates over the
/// transpose for u, and for e at the same time. It iterates over destinations for v, and for e if u requires
/// no gradient. Both are gathered sums without atomics. Max and min keep the argmax of each output element (4
/// bytes). NaN wins over numbers. Of equal messages, and of several NaN, the one with the smallest edge id
/// wins, so that the result does not depend on the number of ranks. Nodes without in-edges get 0.
///
/// Bytes per edge: the forward pass gathers the operands' rows; rows of v and of the output stay in the
/// cache. The pass over sources gathers the operands' rows, the row of g, and the argmax row for max and min;
/// rows of u stay in the cache. For max and min of copy_u, a pass over destinations first marks the columns
/// whose argmax is the edge, one bit each. The pass over sources then gathers a row of g and its bits, which
/// take 1/32 to 1/16 of a row from 64 columns on and up to 2/5 of a row of 5 columns. The bits exist for one
/// block of sources at a time. They use about as much memory as the result, and at least that of three edges
/// per destination.
///
/// For messages that add or subtract, the gradient of v needs no pass over the edges, because gm_e is the
/// same for all of them (except for max and min). Sums of products of u and v use, with z_v the gradient of
/// x_u through one edge (u, v), which is the same for all in-edges of v:
///
///     out[v] = s_v (sum over in-edges of x_u) op y_v
///     dx[u]  = sum over out-edges of z_v
///     dy[v]  = the gradient of y_v in (sum over in-edges of x_u) op y_v
///
/// Each of these three gathers one row per edge. The backward pass stores z, one row of the width of u for
/// each destination.
///
/// Sums by gather_sum add the parts of long rows in double precision. Where the kernel visits one edge at a
/// time, the sum of a row is one sum in `real`, whose rounding error grows with the number of edges.
#pragma once

#include <sar/graph/kernels/message_row.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

class BinaryKernel : public ShardKernel {
 public:
  enum class Result { sum, max, min, edges };

  /// Rows of an operand and of its gradient, for this rank's destinations or edges. Rows of u come with the
  /// stages.
  struct Operand {
    Index width = 0;
    const real* values = nullptr;  ///< null if they are not read
    real* grad = nullptr;          ///< backward; null: not required
  };
  struct Operands {
    MessageRow row;
    MessageTarget lhs = MessageTarget::u, rhs = MessageTarget::u;  ///< equal for copy
    Result result = Result::sum;
    Operand u, v, e;  ///< backward: v.grad is added to, e.grad is overwritten; u.values and u.grad unused
    const real* dst_scale = nullptr;  ///< forward, sum: s_v per destination row; null: 1
    const Index* edge_ids = nullptr;  ///< forward, max and min: per local edge
    local_index* argmax = nullptr;    ///< max and min: [destinations, width]; -1 without in-edges
    /// Forward: [destinations or edges, width]; bfloat16 for max and min of copy_u, if the rows of u are so.
    TypedNumbers out = {};
    bool has_base = false;            ///< forward, sum: add to the values in out
    bool wants_u = false;             ///< backward: sources require a gradient
    ConstTypedNumbers grad_out = {};  ///< backward: as out, multiplied by s_v; bfloat16 as out
  };

  /// Sets the memory of the result. Call it before begin().
  virtual void set_output(TypedRows out, bool has_base) = 0;
};

std::unique_ptr<BinaryKernel> make_binary_kernel(BinaryKernel::Operands operands);

}}  // namespace sar
