// SPDX-License-Identifier: MIT

/// The interface between message passing and its kernels. A kernel computes one stage in local memory; the
/// driver (graph/message/driver.hpp) fetches the source rows of the stages and sends their gradients to the
/// owners. A kernel depends neither on ranks nor on tapes.
///
/// The driver calls, in this order:
///
///     forward     begin()    accumulate(local shard)    accumulate(stage) ...    finish()
///
///     backward    begin_backward()    backward(stage) ...    finish_backward()
///
/// In the backward pass the local shard comes first or last. Kernels that support parts get the local shard
/// in parts, between the stages of the remote shard.
#pragma once

#include <sar/core/tensor/typed_rows.hpp>
#include <sar/graph/shard/graph_shard.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The edges of a shard whose sources are the rows [begin, end), with the values of these rows if the kernel
/// needs them. A stage of the local shard has all sources; in the forward pass it may be a part, the
/// destination rows [first_row, end_row).
struct Stage {
  const GraphShard& shard;
  Index begin;
  Index end;
  ConstTypedNumbers rows;  ///< [end - begin, ...]; null if values are not needed
  Index first_row = 0;
  Index end_row = -1;  ///< -1: all rows

  [[nodiscard]] bool is_part() const noexcept { return end_row >= 0; }
  [[nodiscard]] Index size() const noexcept { return end - begin; }
  /// The stage of the source rows [from, to) of this one, with `width` numbers each.
  [[nodiscard]] Stage of_sources(Index from, Index to, Index width) const {
    return {shard, from, to, rows.from((from - begin) * width)};
  }
};

class ShardKernel : NonCopyable {
 public:
  virtual ~ShardKernel() = default;

  virtual void begin() {}
  /// Processes the messages of the stage's edges. The first call after begin() has the whole local shard, or
  /// its part that starts at destination row 0. In both cases EdgeWalk lists all destinations (those of
  /// other parts without edges), so that a kernel can write its results there and add to them later. Stages
  /// of the remote shard, and parts, come in ascending order.
  virtual void accumulate(const Stage& stage) = 0;
  /// Called after the last stage.
  virtual void finish() {}

  /// Returns whether the kernel reads rows in bfloat16. For other kernels the driver widens the rows of a
  /// stage.
  [[nodiscard]] virtual bool reads_bfloat16() const { return false; }
  /// Returns whether the local shard may come in parts: of its destination rows forward, of its source rows
  /// backward.
  [[nodiscard]] virtual bool takes_parts() const { return false; }

  /// Returns whether backward() reads the values of source rows.
  [[nodiscard]] virtual bool needs_source_in_backward() const = 0;
  virtual void begin_backward() {}
  /// Writes the gradient of the stage's source rows to grad_src [end - begin, ...], or adds it if
  /// `accumulate`, and collects the gradients of the other operands. `grad_src` is null if the sources
  /// require no gradient. The local shard is one stage, unless the kernel supports parts. Stages of a shard
  /// come in ascending order and may be smaller than in the forward pass.
  virtual void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) = 0;
  /// Returns the type in which gradients of the sources are sent and added up where their gradient is of type
  /// `wanted`.
  [[nodiscard]] virtual NumberType gradient_type(NumberType wanted) const { return wanted; }
  /// Returns whether backward() writes numbers of this type. Others are computed as reals and rounded by the
  /// driver.
  [[nodiscard]] virtual bool writes(NumberType type) const { return type == NumberType::reals; }
  /// Called after the last stage.
  virtual void finish_backward() {}
};

}}  // namespace sar
