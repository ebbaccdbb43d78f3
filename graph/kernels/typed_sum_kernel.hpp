// SPDX-License-Identifier: MIT

/// Sums of rows multiplied by the matrix W_r of their edge's type r:
///
///     forward     s_vr   = sum over in-edges u -r-> v of  c_e x_u
///                 y_v    (+)= sum over r of  s_vr W_r
///
///     backward    t_ur   = sum over out-edges u -r-> v of  c_e g_v
///                 dx_u   = sum over r of  t_ur W_r^T
///                 dW_r   = sum over u of  x_u^T t_ur
///                 dc_e   = <x_u W_r, g_v>
///
/// The forward pass iterates over blocks of destination rows, the backward pass over blocks of source rows of
/// the transpose. A block groups its edges by type (EdgesByType), sums the rows of each pair (v, r) or
/// (u, r), and multiplies the pairs of a type by one product while they are in the cache. In the backward
/// pass several blocks keep their rows t, together about 4 million values or as many as W has. Then dW is
/// updated by type and tile, so that its bits do not depend on threads and no thread needs its own copy. Rows
/// with many edges are split into parts (EdgeParts).
///
/// Cost: the gathered rows of gather_sum.hpp, of width in forward and width out backward; 2 in out operations
/// per pair forward, and the same for each of dx and dW. Memory: packed copies of W and the rows t; nothing
/// grows with the number of edges.
#pragma once

#include <sar/core/products/right_operand.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

/// The operands of a pass.
struct TypedSum {
  TypedMatrices::Sizes sizes;               ///< of weight
  const std::uint16_t* types = nullptr;     ///< [local edges]
  const real* weight = nullptr;             ///< W [types, blocks, in / blocks, out / blocks]
  const real* edge_weight = nullptr;        ///< c [local edges]; null: 1
  real* out = nullptr;                      ///< forward: [destinations, out]
  bool has_base = false;                    ///< forward: out holds values to add to
  const real* grad_out = nullptr;           ///< backward: [destinations, out]
  bool wants_source = false;                ///< backward
  real* grad_weight = nullptr;              ///< backward: as weight, added to; null: not required
  real* grad_edge_weight = nullptr;         ///< backward: as edge_weight, overwritten; null: not required
  const TypedMatrices* matrices = nullptr;  ///< packed weight: forward, and backward for dc
  const TypedMatrices* transposed = nullptr;  ///< packed transposed weight: backward for dx

  [[nodiscard]] Index in() const { return sizes.blocks * sizes.rows; }
  [[nodiscard]] Index width() const { return sizes.blocks * sizes.cols; }
};

class TypedSumKernel : public ShardKernel {
 public:
  /// `operands` come without the packed matrices; the kernel packs them.
  explicit TypedSumKernel(const TypedSum& operands) : o_(operands) {}

  /// Sets the memory of the result. Call it before begin().
  void set_output(real* out, bool has_base) {
    o_.out = out;
    o_.has_base = has_base;
  }

  /// Returns the number of values in a row of the result.
  [[nodiscard]] Index width() const { return o_.width(); }

  void begin() override;
  void accumulate(const Stage& stage) override;
  void finish() override { matrices_.reset(); }
  [[nodiscard]] bool takes_parts() const override { return true; }
  [[nodiscard]] bool needs_source_in_backward() const override {
    return o_.grad_weight != nullptr || o_.grad_edge_weight != nullptr;
  }
  void begin_backward() override;
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override;
  void finish_backward() override;

 private:
  TypedSum o_;
  EdgeWalk walk_;
  std::optional<TypedMatrices> matrices_, transposed_;
};

/// Computes the sums of the edges by destination; adds them to out or overwrites it.
void typed_sum(const TypedSum& operands, const Stage& stage, const EdgeRows& edges, bool add);
/// Computes their gradients from the edges by source; grad_src may be null.
void typed_sum_backward(const TypedSum& operands, const Stage& stage, const EdgeRows& edges, real* grad_src,
                        bool accumulate);
}}  // namespace sar
