/// Linear aggregation: sum and mean of copy_u and of u times numbers of the edge, one for each head (H of
/// them; the columns of u are [H, D]); forward also of copy_e.
///
///     s_v, c_u: factors of rows, 1 or functions of degrees; c_u = 1 unless H = 1 and dw is not wanted
///
///     forward     out[v, h] (+)= s_v * sum over in-edges (u, v) of  w_e,h c_u x[u, h]
///     backward    dx[u, h]    =  c_u * sum over out-edges (u, v) of  w_e,h s_v g[v, h]  does not read x
///                 dw_e,h      =  s_v <g[v, h], x[u, h]>                                 reads x
///
/// The backward pass goes over the transpose: gathered sums again, without atomics. Traffic: see
/// gather_sum.hpp. Where dw is wanted, dx and dw come from one walk over the rows of g, with x_u and dx_u in
/// registers; besides, each edge reads and writes H numbers at its place (bench/aggregate.cpp: u_mul_e).
///
/// Room graph/kernels: The kernels of message passing, forward and backward, on one stage in local memory.
/// They know neither ranks nor, except for user-defined messages, tapes.
#pragma once

#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

class LinearKernel : public ShardKernel {
 public:
  /// c_u per source row of a shard.
  struct SourceScale {
    const GraphShard* shard;
    const real* scale;
  };
  struct Operands {
    Index width = 0;
    Index heads = 1;                    ///< numbers of an edge; a divisor of width
    const real* edge_weight = nullptr;  ///< [local edges, heads]; null: 1
    const real* edge_rows = nullptr;    ///< forward: [local edges, width], summed in place of source rows
    const real* table = nullptr;        ///< forward, one head: source row i of the local shard, the only one
    const Index* table_rows = nullptr;  ///< with edges, is row table_rows[i] of this; null: as stages say
    const real* dst_scale = nullptr;    ///< s_v per destination row; null: 1
    std::span<const SourceScale> src_scales = {};  ///< of both shards; empty: c_u = 1
    real* out = nullptr;                           ///< forward: [destinations, width]
    bool has_base = false;                         ///< forward: out holds values to add to
    const real* grad_out = nullptr;                ///< backward: [destinations, width]
    real* grad_edge_weight = nullptr;  ///< backward: as edge_weight, overwritten; null: not wanted
    bool in_double = false;            ///< one head: every sum in double precision; gradients leave so
  };
  explicit LinearKernel(const Operands& operands) : o_(operands) { o_.in_double &= o_.heads == 1; }

  /// Where the result goes; before begin().
  void set_output(real* out, bool has_base) {
    o_.out = out;
    o_.has_base = has_base;
  }

  void begin() override { adds_ = o_.has_base; }
  void accumulate(const Stage& stage) override;
  void finish() override;
  [[nodiscard]] bool takes_parts() const override { return true; }
  [[nodiscard]] bool needs_source_in_backward() const override { return o_.grad_edge_weight != nullptr; }
  [[nodiscard]] bool gradients_in_double() const override { return o_.in_double; }
  void backward(const Stage& stage, real* grad_src, bool accumulate) override;

 private:
  [[nodiscard]] const real* src_scale(const GraphShard& shard) const;

  Operands o_;
  EdgeCursor cursor_;
  Array<double> sums_;  ///< in_double: [destinations, width]
  bool adds_ = false;   ///< the result has values in all rows already
};

/// The sums of a stage with numbers per head; they are added to out, or overwrite it.
void weighted_sum(const LinearKernel::Operands& operands, const Stage& stage, const EdgeRanges& edges,
                  bool add);
/// Their gradients, and dw whatever the number of heads; grad_src may be null.
void weighted_sum_backward(const LinearKernel::Operands& operands, const Stage& stage, real* grad_src,
                           bool accumulate);

}  // namespace sar
