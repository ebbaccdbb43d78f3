/// Sums of rows that are multiplied by the matrix of their edge's type r:
///
///     forward     y_v    (+)= sum over r of  s_vr W_r,     s_vr = sum over in-edges u -r-> v of  c_e x_u
///     backward    t_ur   = sum over out-edges u -r-> v of  c_e g_v
///                 dx_u   = sum over r of  t_ur W_r^T       dW_r = sum over u of  x_u^T t_ur
///                 dc_e   = <x_u W_r, g_v>
///
/// Forward goes by blocks of destination rows, backward by blocks of source rows over the transpose: a block
/// groups its edges by type (edges_by_type.hpp), sums the rows of each pair (v, r) or (u, r), and multiplies
/// the pairs of a type with one product while they are in cache. Backward, some blocks keep their t, together
/// about 4 million numbers or as many as W has, until all of them are there; then dW is added, type by type and in tiles, so that
/// its bits do not depend on threads and no thread has a copy. Rows with many edges come in parts
/// (long_rows.hpp).
///
/// Cost: the gathered rows of gather_sum.hpp, forward of width in, backward of width out; 2 in out operations
/// a pair forward, the same for each of dx and dW. Packed copies of W besides; nothing that grows with edges.
/// bench/typed.cpp has figures.
#pragma once

#include <sar/core/typed_matrices.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <cstdint>
#include <optional>

namespace sar::inline SAR_PRECISION {

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
  real* grad_weight = nullptr;              ///< backward: as weight, added to; null: not wanted
  real* grad_edge_weight = nullptr;         ///< backward: as edge_weight, overwritten; null: not wanted
  const TypedMatrices* matrices = nullptr;  ///< of weight: forward, and backward for dc
  const TypedMatrices* transposed = nullptr;  ///< backward for dx

  [[nodiscard]] Index in() const { return sizes.blocks * sizes.rows; }
  [[nodiscard]] Index width() const { return sizes.blocks * sizes.cols; }
};

class TypedSumKernel : public ShardKernel {
 public:
  /// `operands` without the matrices, which the kernel packs.
  explicit TypedSumKernel(const TypedSum& operands) : o_(operands) {}

  /// Where the result goes; before begin().
  void set_output(real* out, bool has_base) {
    o_.out = out;
    o_.has_base = has_base;
  }

  /// Numbers in a row of the result.
  [[nodiscard]] Index width() const { return o_.width(); }

  void begin() override;
  void accumulate(const Stage& stage) override;
  void finish() override { matrices_.reset(); }
  [[nodiscard]] bool takes_parts() const override { return true; }
  [[nodiscard]] bool needs_source_in_backward() const override {
    return o_.grad_weight != nullptr || o_.grad_edge_weight != nullptr;
  }
  void begin_backward() override;
  void backward(const Stage& stage, real* grad_src, bool accumulate) override;
  void finish_backward() override;

 private:
  TypedSum o_;
  EdgeCursor cursor_;
  std::optional<TypedMatrices> matrices_, transposed_;
};

/// The sums of a stage, added to out, or overwriting it.
void typed_sum(const TypedSum& operands, const Stage& stage, const EdgeRanges& edges, bool add);
/// Their gradients; grad_src may be null.
void typed_sum_backward(const TypedSum& operands, const Stage& stage, real* grad_src, bool accumulate);

}  // namespace sar
