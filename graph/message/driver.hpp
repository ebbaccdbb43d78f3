// SPDX-License-Identifier: MIT

/// The driver: the only code that combines message passing with communication. It iterates over the stages of
/// a GraphPlan, passes the source rows of each stage to a kernel (ShardKernel), and sends their gradients to
/// the owners.
///
/// A pass has two halves, so that other code can run while rows are in flight:
///
///     ForwardPass     starts the fetch                finish(): computes
///     BackwardPass    start(): computes and sends     finish(): adds the gradients that arrive
///
/// Overlap within a pass: parts of the local shard are computed between the halo stages. The order does not
/// depend on which messages have arrived:
///
///     forward, and backward if rows are fetched again    for each stage: a part, then the stage
///     backward, only gradients are sent                  for each stage: the stage, then a part
///
/// The forward pass drops halo rows after use, or keeps them for the backward pass.
///
/// Memory besides the operands, with d = pipeline_depth: the forward pass holds d + 1 stages. A backward pass
/// that only sends gradients divides each stage into 8: it holds d stages of outgoing gradients, d of
/// incoming ones, and the eighth being computed. If rows are fetched again, stages have half the size, and it
/// holds d + 1 of rows, d / 2 of outgoing gradients and d / 2 of incoming ones.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/graph_options.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/shard/graph_shard.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// GraphPlan: the stages and formats in which a pass exchanges the halo rows of a graph. It converts the
// mode, max_halo_bytes, pipeline_depth and halo_format to HaloPlans. This bounds the memory of message
// passing. The mode also determines whether halo rows are kept (keeps_halo_rows).

struct GraphPlan {
  /// The exchanges of a pass. If both are set, rows are received while gradients are sent.
  struct Travels {
    bool fetch = false;  ///< source rows
    bool push = false;   ///< their gradients
    bool kept = false;   ///< rows that an earlier fetch has kept are read
    NumberType fetched_type =
        NumberType::reals;  ///< rows in bfloat16, and gradients in bfloat16 or exact sums,
    NumberType pushed_type = NumberType::reals;  ///< travel as they are stored, whatever the halo format
  };
  /// For source rows of shape `rows`. `draws`: of the operation.
  GraphPlan(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
            const Shape& rows, const Travels& travels);

  HaloPlan fetch;  ///< of source rows, if they travel
  /// Of gradients, if they travel. It divides each stage of a fetch, of this pass or of the forward pass,
  /// into one stage or several.
  HaloPlan push;
};

/// Whether the halo rows of the forward pass are kept for the backward pass, or fetched again.
[[nodiscard]] inline bool keeps_halo_rows(const GraphOptions& options) {
  return options.mode != HaloMode::rematerialize;
}

/// The rows of the remote shard's sources, stage by stage. They come from memory, from the ranks
/// that own them, or from an earlier pass that kept them; a pass over the stages is the same in all cases.
///
///     for (std::size_t k = 0; k < rows.num_stages(); ++k) {
///       kernel.accumulate(rows.next());
///       rows.release();
///     }
///     rows.finish();
class SourceRows : NonCopyable {
 public:
  /// All rows are in memory, or no values are needed (undefined): one stage, or none if the shard
  /// has no sources.
  SourceRows(const GraphShard& remote, TypedRows rows);
  /// No values are needed; these stages.
  SourceRows(const GraphShard& remote, PassVector<HaloStage> stages);
  /// The rows were kept. The vector must live until the last stage was used.
  SourceRows(const GraphShard& remote, const std::vector<HaloRows>& kept);
  /// The rows of `owned` are fetched from their owners. `keep`: where the stages are kept; null: dropped
  /// after use. Call start().
  SourceRows(const GraphShard& remote, const Communicator& comm, const TypedRows& owned, HaloPlan plan,
             std::vector<HaloRows>* keep);

  /// Posts the first messages of the fetch, if there is one, and of `push`, if it is not null. Collective if
  /// one of them is there.
  void start(HaloPush* push);
  [[nodiscard]] bool in_flight() const noexcept { return fetch_.has_value(); }
  [[nodiscard]] std::size_t num_stages() const noexcept { return stages_.size(); }
  /// Returns the next stage; waits for its rows. They stay until release().
  Stage next();
  /// States that the stage is not used any more.
  void release();
  /// After the last stage: waits until the rows of this rank have been sent.
  void finish();

 private:
  const GraphShard& remote_;
  PassVector<HaloStage> stages_;
  TypedRows rows_;
  const std::vector<HaloRows>* kept_ = nullptr;
  std::vector<HaloRows>* keep_ = nullptr;
  std::optional<HaloFetch> fetch_;
  HaloRows held_;  // of the fetch, until release()
  std::size_t next_ = 0;
};

/// Of one operation; its record holds a copy.
class Driver {
 public:
  /// `keeps_rows`: there will be a backward pass and it reads the values of source rows. The modes sequential
  /// and one_shot keep the halo rows then.
  Driver(std::shared_ptr<const ShardedGraph> graph, const GraphOptions& options, bool keeps_rows);

  [[nodiscard]] const GraphTopology& graph() const noexcept { return *graph_->topology; }

  /// Returns whether the local shard is the only stage of a pass, and whole.
  [[nodiscard]] bool has_one_stage() const { return !rows_travel() && graph().remote.num_src_rows == 0; }

  /// Collective. Both halves of a ForwardPass.
  void forward(const TypedRows& src, ShardKernel& kernel) const;
  /// Collective. Both halves of a BackwardPass.
  void backward(const TypedRows& src, const Shape& src_shape, ShardKernel& kernel,
                const GradientPtr& gradient) const;
  /// Collective. The same with a tensor of shape `src_shape` for the gradient; null if no rank requires it.
  /// It is added to if `accumulate` and overwritten otherwise. `op` combines the gradients of one source;
  /// an op other than sum needs `accumulate`.
  void backward(const TypedRows& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                bool accumulate, ReduceOp op = ReduceOp::sum) const;

 private:
  friend class ForwardPass;
  friend class BackwardPass;
  /// Whether halo rows have to be fetched: there are other ranks, and the rows are not in memory.
  [[nodiscard]] bool rows_travel() const { return !graph_->holds_halo() && graph().comm.size() > 1; }

  std::shared_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  HaloDraws draws_;
  std::shared_ptr<std::vector<HaloRows>> kept_;  // of the forward pass; null: fetched again
};

class ForwardPass : NonCopyable {
 public:
  /// Collective. Starts to fetch the halo rows of `src` [local sources, ...]. If src is undefined on all
  /// ranks, no rows are exchanged, and each shard is one stage without rows.
  ForwardPass(const Driver& driver, const TypedRows& src);
  /// Collective. Calls kernel.accumulate() for all stages.
  void finish(ShardKernel& kernel);
  /// Collective. Takes part in the exchange without computing.
  void discard();
  /// Local. Whether rows are fetched.
  [[nodiscard]] bool in_flight() const noexcept { return rows_->in_flight(); }

 private:
  [[nodiscard]] Index row_size() const { return src_.defined() ? src_.row_size() : 0; }

  Driver driver_;
  TypedRows src_;
  std::optional<SourceRows> rows_;
};

class BackwardPass : NonCopyable {
 public:
  /// Collective. Calls kernel.backward() for all stages and sends the gradients of halo rows. `src`: as in
  /// the forward pass, if the kernel needs its values. `src_shape`: the shape of src. Adds this rank's
  /// gradients of its own sources to `gradient` (null: not required).
  void start(const Driver& driver, const TypedRows& src, const Shape& src_shape, ShardKernel& kernel,
             const GradientPtr& gradient);
  /// Collective. Adds the gradients from other ranks to the same `gradient`, to which others may have added
  /// meanwhile.
  void finish(const GradientPtr& gradient);
  /// Local. Whether start() has begun an exchange.
  [[nodiscard]] bool in_flight() const noexcept { return in_flight_; }
  /// Whether finish() adds the gradient of the sources.
  [[nodiscard]] bool adds_later() const noexcept { return in_flight_ || sums_.defined(); }
  /// Local. Gives the exchange up because of the exception being handled, which finish() throws.
  void fail() noexcept;

 private:
  friend class Driver;
  void run(const Driver& driver, const TypedRows& src, const Shape& src_shape, ShardKernel& kernel,
           TypedRows grad_src, bool accumulate, ReduceOp op);
  void end(TypedRows grad_src);
  void send(const Stage& stage, const Shape& src_shape, ShardKernel& kernel, const TypedRows& grad_src);

  PassVector<HaloStage> push_stages_;
  std::size_t next_ = 0;  // of push_stages_
  std::optional<HaloPush> push_;
  std::optional<SourceRows> rows_;
  bool in_flight_ = false;
  std::exception_ptr failure_;
  NumberType stage_type_ = NumberType::reals;  // of the gradients that are sent
  TypedRows sums_;                             // the gradient, if it is added up in another type than its own
};
}}  // namespace sar
