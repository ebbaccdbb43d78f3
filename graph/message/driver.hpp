/// The driver: the only code that combines message passing with communication. It iterates over the stages of
/// a GraphPlan, passes the source rows of each stage to a kernel (ShardKernel), and sends their gradients to
/// the owners.
///
/// Overlap: parts of the local shard are computed between the halo stages, while messages are in flight. The
/// order does not depend on which messages have arrived:
///
///     forward                             local_work; for each stage: a part, then the stage
///     backward, rows are fetched again    for each stage: a part, then the stage; local_work
///     backward, only gradients are sent   for each stage: the stage, then a part; local_work
///
/// local_work is the self term of a layer. The forward pass drops halo rows after use, or keeps them for the
/// backward pass.
///
/// Memory besides the operands, with d = pipeline_depth: the forward pass holds d + 1 stages. A backward pass
/// that only sends gradients divides each stage into 8: it holds d / 2 stages of outgoing gradients, d / 2 of
/// incoming ones, and the eighth being computed. If rows are fetched again, both apply, with stages of half
/// the size.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/halo/halo_fetch.hpp>
#include <sar/comm/halo/halo_push.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/pass_formats.hpp>
#include <sar/graph/shard/shard_kernel.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <memory>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Of one operation; its record holds a copy.
class Driver {
 public:
  /// `keeps_rows`: there will be a backward pass and it reads the values of source rows. The modes sequential
  /// and one_shot keep the halo rows then.
  Driver(std::shared_ptr<const ShardedGraph> graph, const GraphOptions& options, bool keeps_rows);

  [[nodiscard]] const GraphTopology& graph() const noexcept { return *graph_->topology; }

  /// Calls kernel.accumulate() for all stages. `local_work` runs before kernel.begin(), while the first rows
  /// are in flight. `src`: [local sources, ...]; if it is undefined on all ranks, no rows are exchanged, and
  /// each shard is one stage without rows. Collective.
  void forward(
      const Tensor& src, ShardKernel& kernel, FunctionRef<void()> local_work = [] {}) const;
  /// Calls kernel.backward() for all stages. `src`: as in forward(), if the kernel needs its values.
  /// `src_shape`: the shape of src. `grad_src`, of that shape, is added to if `accumulate` and overwritten
  /// otherwise; null if no rank requires the gradient. `op` combines the gradients of one source; an op other
  /// than sum needs `accumulate`. Collective.
  void backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                bool accumulate, ReduceOp op = ReduceOp::sum) const;
  /// The same, adding to `gradient` (null: not required). `local_work` runs while the last gradients are in
  /// flight. It may add to `gradient`, too, and must not communicate. Collective.
  void backward(
      const Tensor& src, const Shape& src_shape, ShardKernel& kernel, const GradientPtr& gradient,
      FunctionRef<void()> local_work = [] {}) const;

 private:
  /// backward() after kernel.begin_backward().
  void add_gradients(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                     bool accumulate, ReduceOp op, FunctionRef<void()> local_work) const;
  /// `grad_src` in doubles where the kernel has them.
  void run_backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                    bool accumulate, ReduceOp op, FunctionRef<void()> local_work) const;

  std::shared_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  HaloDraws draws_;
  std::shared_ptr<std::vector<HaloRows>> kept_;  // of the forward pass; null: fetched again
};

}}  // namespace sar
