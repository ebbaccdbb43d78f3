#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/graph_plan.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Stage whole(const GraphShard& shard, const real* rows) {
  return {shard, 0, shard.num_src_rows, rows};
}

/// What a timeline says of a stage.
void describe(TraceScope& scope, const HaloStage& stage) {
  scope.detail("rows ", stage.begin, " to ", stage.end);
}

/// Divides the local shard into parts that are computed between the halo stages, while rows are in flight.
/// The division depends on sizes only, not on which messages have arrived.
class LocalParts {
 public:
  /// `rows`: how many there are to divide.
  LocalParts(const ShardKernel& kernel, std::size_t stages, Index rows, FunctionRef<void(Index, Index)> run)
      : rows_(rows), stages_(static_cast<Index>(stages)), run_(run) {
    parts_ = kernel.takes_parts() ? std::clamp<Index>(rows / least_rows, 1, std::max<Index>(stages_, 1)) : 1;
  }
  /// Those that are computed before stage `k`.
  void run_before(std::size_t k) {
    run_until(static_cast<Index>(k) * parts_ / std::max<Index>(stages_, 1) + 1);
  }
  void run_all() { run_until(parts_); }

 private:
  static constexpr Index least_rows = 16;
  void run_until(Index part) {
    for (part = std::min(part, parts_); done_ < part; ++done_) {
      const TraceScope scope("local shard", TraceKind::compute);
      run_(rows_ * done_ / parts_, rows_ * (done_ + 1) / parts_);
    }
  }

  Index rows_, stages_, parts_;
  FunctionRef<void(Index begin, Index end)> run_;
  Index done_ = 0;
};

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
  /// All stages, without rows; `between` runs after each.
  void compute_and_send_all(FunctionRef<void(std::size_t stage)> between) {
    while (next_ < plan_.push.halo.size()) {
      {
        TraceScope scope("remote shard", TraceKind::compute);
        describe(scope, plan_.push.halo[next_]);
        send_next(nullptr);
      }
      between(next_ - 1);
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

/// The backward pass without communication: the halo rows are in memory behind the local source rows, or
/// neither source rows nor their gradients are required.
void backward_in_memory(const ShardedGraph& graph, const Tensor& src, ShardKernel& kernel, Tensor* grad_src,
                        bool accumulate, FunctionRef<void()> local_work) {
  const bool reads_rows = kernel.needs_source_in_backward();
  const auto run = [&](const GraphShard& shard, Index first_row) {
    kernel.backward(whole(shard, reads_rows ? src.row(first_row) : nullptr),
                    grad_src != nullptr ? grad_src->row(first_row) : nullptr, accumulate);
  };
  run(graph.topology->local, 0);
  run(graph.topology->remote, graph.topology->local.num_src_rows);
  local_work();
  kernel.finish_backward();
}

/// out += the doubles of `sums`, rounded
void round_sums(const Tensor& sums, Tensor& out) {
  constexpr Index grain = 1 << 16;
  const auto* from = reinterpret_cast<const double*>(sums.data());
  parallel_for_each(out.size(), grain, [&, to = out.data()](Index i) {
    to[i] = static_cast<real>(static_cast<double>(to[i]) + from[i]);
  });
}

}  // namespace

Driver::Driver(std::shared_ptr<const ShardedGraph> graph, const GraphOptions& options, bool keeps_rows)
    : graph_(std::move(graph)), options_(options_of_operation(options)) {
  if (graph_->holds_halo()) return;  // nothing travels
  draws_ = HaloDraws::of_next_operation(options_);
  if (keeps_rows && keeps_halo_rows(options)) kept_ = std::make_shared<std::vector<HaloRows>>();
}

void Driver::forward(const Tensor& src, ShardKernel& kernel, FunctionRef<void()> local_work) const {
  const GraphTopology& graph = *graph_->topology;
  const GraphShard &local = graph.local, &remote = graph.remote;
  if (kept_ != nullptr) kept_->clear();
  const bool fetches = src.defined() && !graph_->holds_halo() && graph.comm.size() > 1;
  GraphPlan plan(graph, options_, src.shape(), {.fetch = fetches});
  const PassFormats formats(graph, options_, draws_, src.shape().row_size());
  plan.fetch.wire = &formats.rows();
  std::optional<HaloFetch> fetch;
  if (fetches) fetch.emplace(graph.comm, src, plan.fetch);
  {
    const auto progress = [&] {
      if (fetch) fetch->progress();
    };
    const PollScope poll(progress);
    local_work();
    kernel.begin();
    const auto run_part = [&](Index begin, Index end) {
      Stage part = whole(local, src.defined() ? src.data() : nullptr);
      if (begin > 0 || end < local.num_dst) part.first_row = begin, part.end_row = end;
      kernel.accumulate(part);
    };
    // rows that are not fetched are one stage in memory
    const std::size_t stages = fetch ? plan.fetch.halo.size() : remote.num_src_rows > 0 ? 1 : 0;
    LocalParts parts(kernel, stages, local.num_dst, run_part);
    for (std::size_t k = 0; k < stages; ++k) {
      parts.run_before(k);
      {
        HaloRows held = fetch ? *fetch->next() : HaloRows{{0, remote.num_src_rows}, {}};
        TraceScope scope("remote shard", TraceKind::compute);
        describe(scope, held.stage);
        const real* rows = fetch ? held.rows.data() : src.defined() ? src.row(local.num_src_rows) : nullptr;
        kernel.accumulate(plan.stage(held.stage, rows));
        if (fetch && kept_ != nullptr) kept_->push_back(std::move(held));
      }
      if (fetch) fetch->release();
    }
    parts.run_all();
    if (fetch) fetch->finish();
  }
  kernel.finish();
}

void Driver::backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                      bool accumulate, ReduceOp op) const {
  kernel.begin_backward();
  add_gradients(src, src_shape, kernel, grad_src, accumulate, op, [] {});
}

void Driver::add_gradients(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                           bool accumulate, ReduceOp op, FunctionRef<void()> local_work) const {
  if (grad_src == nullptr || !kernel.gradients_in_double())
    return run_backward(src, src_shape, kernel, grad_src, accumulate, op, local_work);
  if (!accumulate) grad_src->fill(0);  // local_work may add to it
  Tensor sums(doubles_shape(src_shape));
  run_backward(src, src_shape, kernel, &sums, false, op, local_work);
  round_sums(sums, *grad_src);
}

void Driver::run_backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                          bool accumulate, ReduceOp op, FunctionRef<void()> local_work) const {
  const bool reads_rows = kernel.needs_source_in_backward();
  if (graph_->holds_halo() || (!reads_rows && grad_src == nullptr))
    return backward_in_memory(*graph_, src, kernel, grad_src, accumulate, local_work);
  const GraphTopology& graph = *graph_->topology;
  const bool fetches = reads_rows && kept_ == nullptr;
  GraphPlan plan(graph, options_, src_shape, {.fetch = fetches, .push = grad_src != nullptr});
  const PassFormats formats(graph, options_, draws_, src_shape.row_size());
  plan.fetch.wire = &formats.rows();
  plan.push.wire = kernel.gradients_in_double() ? &wire_format_of_doubles() : &formats.gradients();
  const Shape grad_shape = grad_src != nullptr ? grad_src->shape() : src_shape;
  bool adds = accumulate;
  const auto run_part = [&](Index begin, Index end) {
    kernel.backward({graph.local, begin, end, reads_rows ? src.row(begin) : nullptr},
                    grad_src != nullptr ? grad_src->row(begin) : nullptr, adds);
  };
  const std::size_t stages = fetches      ? plan.fetch.halo.size()
                             : reads_rows ? kept_->size()
                                          : plan.push.halo.size();
  LocalParts parts(kernel, stages, graph.local.num_src_rows, run_part);

  if (grad_src != nullptr && !accumulate && graph.comm.size() > 1) {  // gradients of others come at any time
    grad_src->fill(0);
    adds = true;
  }
  GradientSender sender(graph.comm, plan, grad_shape, kernel, grad_src, op);
  if (fetches) {
    HaloFetch fetch(graph.comm, src, plan.fetch, HaloStart::later);
    sender.start(&fetch);
    const auto progress = [&] { fetch.progress(), sender.progress(); };
    const PollScope poll(progress);
    for (std::size_t k = 0; k < stages; ++k) {
      parts.run_before(k);
      sender.compute_and_send(*fetch.next());
      fetch.release();
    }
    parts.run_all();
    local_work();
    sender.finish();
    fetch.finish();
  } else {  // gradients of halo rows first: they travel while the local shard is computed
    sender.start(nullptr);
    const auto progress = [&] { sender.progress(); };
    const PollScope poll(progress);
    const auto run_parts = [&](std::size_t k) {
      if (kernel.takes_parts()) parts.run_before(k);
    };
    if (!reads_rows) sender.compute_and_send_all(run_parts);
    for (std::size_t k = 0; reads_rows && k < stages; ++k) {
      sender.compute_and_send((*kept_)[k]);
      run_parts(k);
    }
    parts.run_all();
    local_work();
    sender.finish();
  }
  kernel.finish_backward();
}

void Driver::backward(const Tensor& src, const Shape& src_shape, ShardKernel& kernel,
                      const GradientPtr& gradient, FunctionRef<void()> local_work) const {
  kernel.begin_backward();  // before there is memory for the gradient: kernels give up what they kept
  if (gradient == nullptr)
    return add_gradients(src, src_shape, kernel, nullptr, false, ReduceOp::sum, local_work);
  gradient->add([&](Tensor& sum, bool accumulate) {
    add_gradients(src, src_shape, kernel, &sum, accumulate, ReduceOp::sum, local_work);
  });
}

}}  // namespace sar
