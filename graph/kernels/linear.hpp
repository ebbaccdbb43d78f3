// SPDX-License-Identifier: MIT

/// Linear aggregation: sum and mean of copy_u and of u times edge weights, with one weight per head (H heads;
/// a row of u is [H, D]). The forward pass also supports copy_e.
///
/// With row factors s_v and c_u, each 1 or a function of a degree; c_u = 1 unless H = 1 and dw is not
/// required:
///
///     forward     out[v, h] (+)= s_v * sum over in-edges (u, v) of  w_e,h c_u x[u, h]
///
///     backward    dx[u, h]    =  c_u * sum over out-edges (u, v) of  w_e,h s_v g[v, h]      does not read x
///                 dw_e,h      =  s_v <g[v, h], x[u, h]>                                     reads x
///
/// The backward pass iterates over the transpose: gathered sums again, without atomics. gather_sum.hpp
/// describes the bytes moved. If dw is required, one pass over gathered rows of g computes dx and dw, with
/// x_u and dx_u in registers; each edge also reads and writes H values.
///
/// Room graph/kernels: Kernels of message passing, forward and backward, for one stage in local memory. They
/// do not depend on ranks and, except for user-defined messages, on the tape.
#pragma once

#include <sar/core/exact_sum.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

struct GatherSum;

class LinearKernel : public ShardKernel {
 public:
  /// The factors c_u of the source rows of a shard.
  struct SourceScale {
    const GraphShard* shard;
    const real* scale;
  };
  struct Operands {
    Index width = 0;
    Index heads = 1;                    ///< weights per edge; a divisor of width
    const real* edge_weight = nullptr;  ///< [local edges, heads]; null: 1
    const real* edge_rows = nullptr;    ///< forward: [local edges, width], summed instead of source rows
    const Bfloat16* edge_rows_bfloat16 = nullptr;  ///< in place of edge_rows
    const real* table = nullptr;        ///< forward, one head, if only the local shard has edges: source
    const Index* table_rows = nullptr;  ///< row i is row table_rows[i] of table; null: rows of the stage
    const Bfloat16* table_bfloat16 = nullptr;  ///< in place of table
    const real* dst_scale = nullptr;    ///< s_v per destination row; null: 1
    std::span<const SourceScale> src_scales = {};  ///< of both shards; empty: c_u = 1
    real* out = nullptr;                           ///< forward: [destinations, width]
    Bfloat16* out_bfloat16 = nullptr;              ///< in place of out, if only the local shard has edges
    bool has_base = false;                         ///< forward: add to the values in out
    const real* grad_out = nullptr;                ///< backward: [destinations, width]
    const Bfloat16* grad_out_bfloat16 = nullptr;   ///< in place of grad_out
    real* grad_edge_weight = nullptr;  ///< backward: as edge_weight, overwritten; null: not required
    /// Backward: [local edges, width], summed to their sources in place of weighted rows of grad_out; exact.
    const real* grad_edge_rows = nullptr;
    /// Backward: [local edges, width], the gradient of edge_rows, overwritten with s_v g[v].
    TypedRows grad_of_edge_rows = {};
    bool exact = false;      ///< the bits do not depend on the order of the edges (exact_gather_sum.hpp)
    bool one_stage = false;  ///< exact, forward: only the local shard has edges
  };
  explicit LinearKernel(const Operands& operands) : o_(operands) {}

  /// Sets the memory of the result. Call it before begin().
  void set_output(TypedRows out, bool has_base) {
    o_.out = out.is_real() ? out.reals().data() : nullptr;
    o_.out_bfloat16 = out.bfloat16();
    o_.has_base = has_base;
  }

  void begin() override { adds_ = o_.has_base; }
  void accumulate(const Stage& stage) override;
  void finish() override;
  [[nodiscard]] bool takes_parts() const override { return true; }
  [[nodiscard]] bool needs_source_in_backward() const override { return o_.grad_edge_weight != nullptr; }
  void backward(const Stage& stage, real* grad_src, bool accumulate) override;
  [[nodiscard]] bool reads_bfloat16() const override { return !o_.exact; }
  [[nodiscard]] NumberType gradient_type(NumberType wanted) const override {
    return o_.exact ? NumberType::exact_sums : wanted;
  }
  void backward_typed(const Stage& stage, TypedRows& grad_src, Index first, bool accumulate) override;

 private:
  [[nodiscard]] const real* src_scale(const GraphShard& shard) const;
  [[nodiscard]] bool sums_edge_rows() const {
    return o_.edge_rows != nullptr || o_.edge_rows_bfloat16 != nullptr;
  }
  /// Whether the gradient of the sources is one gather_sum.
  [[nodiscard]] bool is_one_gather() const { return o_.heads == 1 && o_.grad_edge_weight == nullptr; }
  /// The sums over `edges` of a stage; later ones are added to them.
  [[nodiscard]] GatherSum gather_of(const Stage& stage, const EdgeRanges& edges);
  void copy_to_edges(const Stage& stage);
  /// dx, in one of two types; the other pointer is null.
  void gather_gradients(const Stage& stage, real* out, Bfloat16* out_bfloat16, bool accumulate) const;
  void gather_exactly(const Stage& stage, real* out, ExactSum* sums, bool accumulate) const;

  Operands o_;
  EdgeCursor cursor_;
  Array<ExactSum> sums_;  ///< exact, of several stages: [destinations, width]
  bool adds_ = false;   ///< all rows of the result have values to add to
};

/// Computes the sums of a stage with weights per head; adds them to out or overwrites it.
void weighted_sum(const LinearKernel::Operands& operands, const Stage& stage, const EdgeRanges& edges,
                  bool add);
/// Computes their gradients, and dw for any number of heads; grad_src may be null.
void weighted_sum_backward(const LinearKernel::Operands& operands, const Stage& stage, real* grad_src,
                           bool accumulate);

}}  // namespace sar
