#include <sar/core/parallel.hpp>
#include <sar/core/trace.hpp>
#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/graph_plan.hpp>

#include <optional>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

Stage whole(const GraphShard& shard, const real* rows) {
  return {shard, 0, shard.num_src_rows, rows};
}

/// What a timeline says of a stage.
void describe(TraceScope& scope, const HaloStage& stage) {
  scope.detail("round ", stage.round, ", rows ", stage.begin, " to ", stage.end);
}

/// Gradients of halo rows: computed by the kernel stage by stage, and sent to the owners.
class GradientSender {
 public:
  /// `sum` is null when nothing is sent.
  GradientSender(const Communicator& comm, const GraphPlan& plan, const Shape& shape, ShardKernel& kernel,
                 Tensor* sum, ReduceOp op)
      : plan_(plan), shape_(shape), kernel_(kernel) {
    if (sum != nullptr) push_.emplace(comm, *sum, plan.push, HaloStart::later, op);
  }

  /// Together with a fetch, or alone.
  void start(HaloFetch* fetch) {
    if (fetch != nullptr)
      fetch->start(push_ ? &*push_ : nullptr);
    else if (push_)
      push_->start();
  }

  void progress() {
    if (push_) push_->progress();
  }
  [[nodiscard]] bool adds_before_finish() const { return push_ && push_->adds_before_finish(); }
  void receive_all_but_last() {
    if (push_) push_->receive_all_but_last();
  }
  void finish() {
    if (push_) push_->finish();
  }

  /// The next stage of plan.fetch, with its rows.
  void compute_and_send(const HaloRows& held) {
    TraceScope scope("remote shard", TraceKind::compute);
    describe(scope, held.stage);
    if (!push_) return kernel_.backward(plan_.stage(held.stage, held.rows.data()), nullptr, false);
    for (Index done = 0; done < held.stage.size();) {
      const Index count = plan_.push.halo[next_].size();
      send_next(held.rows.row(done));
      done += count;
    }
  }
  /// All stages, without rows.
  void compute_and_send_all() {
    while (next_ < plan_.push.halo.size()) {
      TraceScope scope("remote shard", TraceKind::compute);
      describe(scope, plan_.push.halo[next_]);
      send_next(nullptr);
    }
  }

 private:
  void send_next(const real* rows) {
    const HaloStage& stage = plan_.push.halo[next_++];
    Tensor gradient(shape_.with_rows(stage.size()));
    kernel_.backward(plan_.stage(stage, rows), gradient.data(), false);
    push_->send(std::move(gradient));
  }

  const GraphPlan& plan_;
  Shape shape_;
  ShardKernel& kernel_;
  std::optional<HaloPush> push_;
  std::size_t next_ = 0;  // stage of plan.push
};

/// out (+)= the doubles of `sums`, rounded
void round_sums(const Tensor& sums, Tensor& out, bool accumulate) {
  constexpr Index grain = 1 << 16;
  const auto* from = reinterpret_cast<const double*>(sums.data());
  parallel_for(out.size(), grain, [&, to = out.data()](Index begin, Index end) {
    for (Index i = begin; i < end; ++i)
      to[i] = static_cast<real>((accumulate ? static_cast<double>(to[i]) : 0) + from[i]);
  });
}

}  // namespace

Driver::Driver(std::shared_ptr<const ShardedGraph> graph, const GraphOptions& options, bool keeps_rows)
    : graph_(std::move(graph)), options_(options) {
  if (keeps_rows && keeps_halo_rows(options)) kept_ = std::make_shared<std::vector<HaloRows>>();
}

void Driver::forward(const Tensor& src, ShardKernel& kernel, FunctionRef<void()> local_work) const {
  const GraphPlan plan(*graph_, options_, src.shape(), {.fetch = src.defined()});
  if (kept_ != nullptr) kept_->clear();
  if (!src.defined()) {
    local_work();
    kernel.begin();
    kernel.accumulate(whole(graph_->local, nullptr));
    for (const GraphShard* shard : plan.shards) kernel.accumulate(whole(*shard, nullptr));
    return kernel.finish();
  }
  HaloFetch fetch(graph_->comm, src, plan.fetch);
  {
    const auto progress = [&] { fetch.progress(); };
    const PollScope poll(progress);
    local_work();
    kernel.begin();
    {
      const TraceScope scope("local shard", TraceKind::compute);
      kernel.accumulate(whole(graph_->local, src.data()));
    }
    for (auto held = fetch.next(); held; held.reset(), held = fetch.next()) {
      TraceScope scope("remote shard", TraceKind::compute);
      describe(scope, held->stage);
      kernel.accumulate(plan.stage(held->stage, held->rows.data()));
      if (kept_ != nullptr) kept_->push_back(std::move(*held));
    }
    fetch.finish();
  }
  kernel.finish();
}

void Driver::backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                      bool accumulate, ReduceOp op) const {
  kernel.begin_backward();
  add_gradients(src, src_shape, kernel, grad_src, accumulate, op);
}

void Driver::add_gradients(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                           bool accumulate, ReduceOp op) const {
  if (grad_src == nullptr || !kernel.gradients_in_double())
    return run_backward(src, src_shape, kernel, grad_src, accumulate, op);
  Tensor sums(doubles_shape(src_shape));
  run_backward(src, src_shape, kernel, &sums, false, op);
  round_sums(sums, *grad_src, accumulate);
}

void Driver::run_backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                          bool accumulate, ReduceOp op) const {
  const bool reads_rows = kernel.needs_source_in_backward();
  const bool fetches = reads_rows && kept_ == nullptr;
  GraphPlan plan(*graph_, options_, src_shape, {.fetch = fetches, .push = grad_src != nullptr});
  if (kernel.gradients_in_double()) plan.push.wire = &wire_format_of_doubles();
  const Shape grad_shape = grad_src != nullptr ? grad_src->shape() : src_shape;
  const auto local_shard = [&](bool add) {
    const TraceScope scope("local shard", TraceKind::compute);
    kernel.backward(whole(graph_->local, reads_rows ? src.data() : nullptr),
                    grad_src != nullptr ? grad_src->data() : nullptr, add);
  };

  if (!reads_rows && grad_src == nullptr) {  // nothing travels
    local_shard(false);
    for (const GraphShard* shard : plan.shards) kernel.backward(whole(*shard, nullptr), nullptr, false);
    return kernel.finish_backward();
  }

  if (fetches) {  // the local shard is computed while the first rows travel
    HaloFetch fetch(graph_->comm, src, plan.fetch, HaloStart::later);
    GradientSender sender(graph_->comm, plan, grad_shape, kernel, grad_src, op);
    sender.start(&fetch);
    const auto progress_fetch = [&] { fetch.progress(); };
    {
      const PollScope poll(progress_fetch);
      local_shard(accumulate);
    }
    const auto progress = [&] { fetch.progress(), sender.progress(); };
    const PollScope poll(progress);
    for (auto held = fetch.next(); held; held.reset(), held = fetch.next()) sender.compute_and_send(*held);
    fetch.finish();
    sender.receive_all_but_last();
    sender.finish();
  } else {  // gradients of halo rows first: they travel while the local shard is computed
    GradientSender sender(graph_->comm, plan, grad_shape, kernel, grad_src, op);
    sender.start(nullptr);
    const bool sums_start_early = sender.adds_before_finish();
    if (sums_start_early && !accumulate) grad_src->fill(0);
    const auto progress = [&] { sender.progress(); };
    const PollScope poll(progress);
    if (reads_rows)
      for (const HaloRows& held : *kept_) sender.compute_and_send(held);
    else
      sender.compute_and_send_all();
    sender.receive_all_but_last();
    local_shard(accumulate || sums_start_early);
    sender.finish();
  }
  kernel.finish_backward();
}

void Driver::backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel,
                      const GradientPtr& gradient) const {
  if (gradient == nullptr) return backward(src, src_shape, kernel, nullptr, false);
  kernel.begin_backward();  // before there is memory for the gradient: kernels give up what they kept
  gradient->add([&](Tensor& sum, bool accumulate) {
    add_gradients(src, src_shape, kernel, &sum, accumulate, ReduceOp::sum);
  });
}

}  // namespace sar
