/// Every built-in message with every reduction, fused: no message per edge is stored.
///
///     forward     out[v] = reduce over in-edges e = (u, v) of  m_e = lhs op rhs,  or  out[e] = m_e
///     backward    with gm_e = s_v g[v],  g[v] where e is the argmax (max, min),  or  g[e]:
///                 dx[u], dx[v], dx[e] = sum of the gradients of m_e over the edges of u, of v, or at e
///
/// s_v is 1 or 1 / in-degree(v), which the caller multiplies into g. The backward pass goes over the
/// transpose for u (and for e along with it), and over destinations for v (and for e, if u wants no
/// gradient): gathered sums, without atomics. For max and min the argmax is kept per output element (4
/// bytes). Of equal messages the one with the smallest edge id is taken, so that the result does not depend
/// on P. Nodes without in-edges get 0.
///
/// Traffic: forward the operands' rows per edge, v's and the output's from cache; backward the same and the
/// gradient's row (and the argmax') per edge that is visited by source; sources stay in cache then. For max
/// and min of copy_u, a walk over destinations first marks the columns of which each edge is the argmax, a
/// bit each; the walk over sources then gathers a row of g and its bits: 1/32 to 1/16 of a row from 64 columns
/// on, up to 2/5 of a row of 5. The bits of a block of sources are kept meanwhile, about as much as the
/// result, but at least three edges' for each destination. For messages that add or
/// subtract, v needs no pass over its edges: gm_e is the same for all of them, but for max and min. For the
/// sum of products of u and v, with z_v the gradient of x_u by one edge (u, v), which is the same for all
/// edges of v,
///
///     out[v] = s_v (sum over in-edges of x_u) op y_v,    dx[u] = sum over out-edges of z_v,
///     dy[v] = the gradient of y_v in (sum over in-edges of x_u) op y_v
///
/// which gathers one row an edge three times; the backward pass holds z, as large as rows of u for all
/// destinations. Times beside copy_u sum: bench/aggregate.cpp.
#pragma once

#include <sar/graph/kernels/message_row.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <memory>

namespace sar::inline SAR_PRECISION {

class BinaryKernel : public ShardKernel {
 public:
  enum class Result { sum, max, min, edges };

  /// Rows of an operand and of its gradient: of this worker's destinations or edges. (Those of u come with
  /// the stages.)
  struct Operand {
    Index width = 0;
    const real* values = nullptr;  ///< null where they are not read
    real* grad = nullptr;          ///< backward; null: not wanted
  };
  struct Operands {
    MessageRow row;
    MessageTarget lhs = MessageTarget::u, rhs = MessageTarget::u;  ///< the same for copy
    Result result = Result::sum;
    Operand u, v, e;  ///< backward: v.grad is added to, e.grad overwritten; u.values and u.grad not used
    const real* dst_scale = nullptr;  ///< forward, sum: s_v per destination row; null: 1
    const Index* edge_ids = nullptr;  ///< forward, max and min: per local edge
    local_index* argmax = nullptr;    ///< max and min: [destinations, width]; -1 without in-edges
    real* out = nullptr;              ///< forward: [destinations or edges, width]
    bool has_base = false;            ///< forward, sum: out holds values to add to
    bool wants_u = false;             ///< backward: sources want a gradient
    const real* grad_out = nullptr;   ///< backward: as out, times s_v
  };

  /// Where the result goes; before begin().
  virtual void set_output(real* out, bool has_base) = 0;
};

std::unique_ptr<BinaryKernel> make_binary_kernel(BinaryKernel::Operands operands);

}  // namespace sar
