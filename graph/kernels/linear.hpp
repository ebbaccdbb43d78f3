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

#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

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
    ConstTypedNumbers edge_rows = {};   ///< forward: [local edges, width], summed instead of source rows
    ConstTypedNumbers table = {};       ///< forward, one head, if only the local shard has edges: source
    const Index* table_rows = nullptr;  ///< row i is row table_rows[i] of table; null: rows of the stage
    const real* dst_scale = nullptr;    ///< s_v per destination row; null: 1
    std::span<const SourceScale> src_scales = {};  ///< of both shards; empty: c_u = 1
    TypedNumbers out = {};  ///< forward: [destinations, width]; bfloat16 if only the local shard has edges
    bool has_base = false;  ///< forward: add to the values in out
    ConstTypedNumbers grad_out = {};   ///< backward: [destinations, width]
    real* grad_edge_weight = nullptr;  ///< backward: as edge_weight, overwritten; null: not required
    /// Backward: [local edges, width], the gradient of edge_rows, overwritten with s_v g[v].
    TypedNumbers grad_of_edge_rows = {};
    Accumulator accumulator = Accumulator::rounded;
    bool one_stage = false;  ///< exact, forward: only the local shard has edges
  };
  explicit LinearKernel(const Operands& operands) : o_(operands) {}

  /// Sets the memory of the result. Call it before begin().
  void set_output(TypedRows out, bool has_base) {
    o_.out = out.numbers();
    o_.has_base = has_base;
  }

  void begin() override { adds_ = o_.has_base; }
  void accumulate(const Stage& stage) override;
  void finish() override;
  [[nodiscard]] bool takes_parts() const override { return true; }
  [[nodiscard]] bool needs_source_in_backward() const override { return o_.grad_edge_weight != nullptr; }
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override;
  [[nodiscard]] bool reads_bfloat16() const override { return !exact(); }
  [[nodiscard]] NumberType gradient_type(NumberType wanted) const override {
    return exact() ? NumberType::exact_sums : wanted;
  }
  [[nodiscard]] bool writes(NumberType type) const override {
    return type == NumberType::reals || exact() || is_one_gather();
  }

 private:
  [[nodiscard]] const real* src_scale(const GraphShard& shard) const;
  [[nodiscard]] bool exact() const { return o_.accumulator == Accumulator::exact; }
  /// Whether the gradient of the sources is one gather_sum.
  [[nodiscard]] bool is_one_gather() const { return o_.heads == 1 && o_.grad_edge_weight == nullptr; }
  /// The sums over `edges` of a stage; later ones are added to them.
  [[nodiscard]] GatherSum gather_of(const Stage& stage, const EdgeRows& edges);
  void copy_to_edges(const Stage& stage);
  void gather_gradients(const Stage& stage, TypedNumbers grad_src, bool accumulate);

  Operands o_;
  EdgeWalk walk_;
  Array<ExactSum> sums_;  ///< exact, of several stages: [destinations, width]
  bool adds_ = false;   ///< all rows of the result have values to add to
};

/// Computes the sums of a stage with weights per head; adds them to out or overwrites it.
void weighted_sum(const LinearKernel::Operands& operands, const Stage& stage, const EdgeRows& edges,
                  bool add);
/// Computes their gradients, and dw for any number of heads; grad_src may be null.
void weighted_sum_backward(const LinearKernel::Operands& operands, const Stage& stage, const EdgeRows& edges,
                           real* grad_src, bool accumulate);
}}  // namespace sar
