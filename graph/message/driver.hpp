/// The driver: the one place where message passing and communication come together. It goes from stage to
/// stage of a GraphPlan, brings the source rows to a kernel (ShardKernel) and takes their gradients to the
/// owners.
///
/// The local shard comes in parts between the stages of the halo, so that rows travel while it is computed;
/// the order is the same in every run, whatever has arrived. Where rows are fetched, a part comes before each
/// stage, and before all of them what the caller computes besides (the self term); halo rows are dropped
/// after their use, or kept for the backward pass. Where only gradients travel, those of a stage are computed
/// and leave, then a part follows; after all parts, before it waits for the last gradients, comes what the
/// caller differentiates besides. Memory besides the operands: forward pipeline_depth + 1 stages; backward,
/// where a stage of gradients is an eighth of one, half of pipeline_depth stages outgoing, as much incoming,
/// and an eighth being filled; where rows are fetched again, both, with stages half as large.
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

  /// Gives all stages to kernel.accumulate(). `local_work` runs after the first rows are under way and before
  /// kernel.begin(). `src` [local sources, ...]; undefined on all ranks: nothing travels, and every shard is
  /// one stage without rows. Collective.
  void forward(
      const Tensor& src, ShardKernel& kernel, FunctionRef<void()> local_work = [] {}) const;
  /// Gives all stages to kernel.backward(). `src`: as in forward(), where the kernel needs its values.
  /// `src_shape`: of src. `grad_src` [as src]: added to when `accumulate`, overwritten otherwise; null when
  /// no rank wants it. `op`: how gradients of the same source are combined; other than sum only with
  /// `accumulate`. Collective.
  void backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                bool accumulate, ReduceOp op = ReduceOp::sum) const;
  /// Adds to `gradient`; null when it is not wanted. `local_work` runs while the last gradients travel; it
  /// may add to `gradient`, too, and does not communicate. Collective.
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
