/// Linear aggregation: sum and mean of copy_u and of u * e with one scalar per edge.
///
///     s_v = 1 or 1 / in-degree(v)
///
///     forward     out[v] (+)= s_v * sum over in-edges (u, v) of  w_e x_u
///     backward    dx[u]   =  sum over out-edges (u, v) of  w_e s_v g[v]             does not read x
///                 dw_e    =  s_v <g[v], x_u>                                        reads x
///
/// The backward pass goes over the transpose: gathered sums again, without atomics. Traffic: see
/// gather_sum.hpp; dw streams x once per edge and keeps g[v] in cache.
///
/// Room graph/kernels: The kernels of message passing, forward and backward, on one stage in local memory.
/// They know neither ranks nor, except for user-defined messages, tapes.
#pragma once

#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

namespace sar::inline SAR_PRECISION {

class LinearKernel : public ShardKernel {
 public:
  struct Operands {
    Index width = 0;
    const real* edge_weight = nullptr;  ///< per local edge; null: 1
    const real* dst_scale = nullptr;    ///< s_v per destination row; null: 1
    real* out = nullptr;                ///< forward: [destinations, width]
    bool has_base = false;              ///< forward: out holds values to add to
    const real* grad_out = nullptr;     ///< backward: [destinations, width]
    real* grad_edge_weight = nullptr;   ///< backward: per local edge, overwritten; null: not wanted
  };
  explicit LinearKernel(const Operands& operands) : o_(operands) {}

  /// Where the result goes; before begin().
  void set_output(real* out, bool has_base) {
    o_.out = out;
    o_.has_base = has_base;
  }

  void begin() override { adds_ = o_.has_base; }
  void accumulate(const Stage& stage) override;
  [[nodiscard]] bool needs_source_in_backward() const override { return o_.grad_edge_weight != nullptr; }
  void backward(const Stage& stage, real* grad_src, bool accumulate) override;

 private:
  Operands o_;
  EdgeCursor cursor_;
  bool adds_ = false;  ///< the result has values in all rows already
};

/// The gradient dw of the edges of a stage.
void linear_edge_gradient(const LinearKernel::Operands& operands, const Stage& stage);

}  // namespace sar
