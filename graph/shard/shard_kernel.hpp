/// The interface between message passing and its kernels. A kernel computes with one stage in local memory;
/// the driver (graph/message/driver.hpp) brings the source rows of the stages and takes their gradients to
/// the owners. A kernel knows neither ranks nor tapes.
///
/// The driver calls, in this order,
///
///     forward     begin()            accumulate(local shard)   accumulate(stage) ...                    finish()
///     backward    begin_backward()   backward(stage) ...       with the local shard first or last       finish_backward()
///
/// Kernels that take parts get the local shard in parts, the stages of the other shard between them.
#pragma once

#include <sar/graph/shard/graph_shard.hpp>

namespace sar::inline SAR_PRECISION {

/// The edges of a shard whose sources are rows [begin, end), with the values of these rows where the kernel
/// needs them. Of the local shard, all sources; forward, it may be a part: destination rows [first_row,
/// end_row).
struct Stage {
  const GraphShard& shard;
  Index begin;
  Index end;
  const real* rows;  ///< [end - begin, ...]; null where values are not needed
  Index first_row = 0;
  Index end_row = -1;  ///< -1: all rows

  [[nodiscard]] bool is_part() const noexcept { return end_row >= 0; }
  [[nodiscard]] Index size() const noexcept { return end - begin; }
};

class ShardKernel {
 public:
  virtual ~ShardKernel() = default;

  virtual void begin() {}
  /// Takes the messages of the stage's edges. The first call after begin() has the local shard as a whole, or
  /// the part of it that begins at destination row 0. Either way EdgeCursor lists all destinations (those of
  /// other parts without edges), so that a kernel may write its results there and add to them later. Stages
  /// of the other shard, and parts, come in ascending order.
  virtual void accumulate(const Stage& stage) = 0;
  /// After the last stage.
  virtual void finish() {}

  /// Whether the local shard may come in parts: forward of its destination rows, backward of its source rows.
  [[nodiscard]] virtual bool takes_parts() const { return false; }

  /// Whether backward() reads the values of source rows.
  [[nodiscard]] virtual bool needs_source_in_backward() const = 0;
  virtual void begin_backward() {}
  /// Whether grad_src of backward() is an array of doubles.
  [[nodiscard]] virtual bool gradients_in_double() const { return false; }
  /// Writes the gradient of the stage's source rows to grad_src [end - begin, ...], or adds it when
  /// `accumulate`, and collects the gradients of other operands. `grad_src` is null when the sources want no
  /// gradient. The local shard is one stage, unless the kernel takes parts. Stages of a shard come in
  /// ascending order and may be smaller than in the forward pass.
  virtual void backward(const Stage& stage, real* grad_src, bool accumulate) = 0;
  /// After the last stage.
  virtual void finish_backward() {}
};

}  // namespace sar
