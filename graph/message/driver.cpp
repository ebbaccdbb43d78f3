// SPDX-License-Identifier: MIT

// The local shard is divided into as many parts as there are stages, of at least 16 rows each, if the
// kernel takes parts. Otherwise it is one part: the first in a pass that fetches, the last in a backward
// pass whose rows are here. A backward pass computes the gradients of a stage in the smaller stages of the
// push and sends each when it is ready.
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/message/driver.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// A stage has, with B bytes per row and N the most source rows of a rank,
//
//     rows = max(N / 4, 1 MiB / B, 1), at most max(max_halo_bytes / B, 1) if that is set
//
// with N / 8 if rows are fetched and gradients pushed in one pass. From 8 rows on, rows is a multiple of
// 8, and the push has 8 stages for each of these. In mode one_shot, a fetch has one stage of all rows. All
// numbers are the same on every rank.

namespace {

/// A stage has 1 / stages_of_owned_rows of the rows of the largest rank, but at least least_bytes. A forward
/// pass reads and writes the results of a stage's destinations once per stage, so smaller stages would save
/// little memory and cost much time.
constexpr Index stages_of_owned_rows = 4;
constexpr Index least_bytes = Index{1} << 20;
/// Number of push stages per fetch stage. A pass that only sends gradients has as many of them in flight,
/// each way, so that what ran between the two halves of the forward pass is differentiated while they travel;
/// beside a fetch it is half of them.
constexpr Index pushes_per_fetch = 8;
constexpr Index most_depth = 1 << 20;

struct StageRows {
  Index fetch;
  Index push;  ///< divides fetch
};

/// The same on every rank.
StageRows stage_rows(const GraphTopology& graph, const GraphOptions& options, const Shape& shape,
                     NumberType type, bool fetch_and_push) {
  const Index row_bytes = std::max<Index>(shape.row_size(), 1) * bytes_of(type);
  Index most_owned = 0;
  for (int q = 0; q < graph.comm.size(); ++q) most_owned = std::max(most_owned, graph.src_book.num_nodes(q));
  Index rows = most_owned / stages_of_owned_rows;
  if (fetch_and_push) rows /= 2;
  rows = std::max({rows, least_bytes / row_bytes, Index{1}});
  if (options.max_halo_bytes > 0)
    rows = std::min(rows, std::max<Index>(options.max_halo_bytes / row_bytes, 1));
  if (rows < pushes_per_fetch) return {rows, rows};
  return {rows / pushes_per_fetch * pushes_per_fetch, rows / pushes_per_fetch};
}

/// The format of rows of a type; `draws`: what rounds them.
WireFormatPtr wire_of(NumberType type, HaloFormat format, Index row_size, const RowDraws& draws) {
  return type == NumberType::reals ? make_wire_format(format, row_size, draws) : stored_format(type);
}

}  // namespace

GraphPlan::GraphPlan(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
                     const Shape& rows, const Travels& travels) {
  const NumberType type = travels.fetch || travels.kept ? travels.fetched_type : travels.pushed_type;
  const bool halves = type == NumberType::bfloat16;
  const StageRows sizes = stage_rows(graph, options, rows, halves ? NumberType::bfloat16 : NumberType::reals,
                                     travels.fetch && travels.push);
  if (travels.push) {
    const Index of_fetch = sizes.fetch / sizes.push;
    const Index pushes = std::max<Index>(travels.fetch ? of_fetch / 2 : of_fetch, 1) * options.pipeline_depth;
    const RowDraws of_halo{.key = Random(draws.gradients).key(),
                           .owned_ids = {},
                           .first_halo_id = static_cast<Index>(graph.comm.rank()) << 32};
    push = plan_halo(graph.shared_rounds, sizes.push, static_cast<int>(std::min(pushes, most_depth)),
                     wire_of(travels.pushed_type, options.halo_format, rows.row_size(), of_halo));
  }
  if (travels.fetch)
    fetch = plan_halo(graph.shared_rounds, options.mode == HaloMode::one_shot ? 0 : sizes.fetch,
                      options.pipeline_depth,
                      wire_of(travels.fetched_type, options.halo_format, rows.row_size(),
                              {.key = Random(draws.rows).key(), .owned_ids = graph.src_ids()}));
}

namespace {

/// What a timeline says of a stage.
void describe(TraceScope& scope, const Stage& stage) {
  scope.detail("rows ", stage.begin, " to ", stage.end);
}

/// Tells a timeline which rows a pass exchanges, on one rank, too, where it exchanges none: `plan` predicts
/// traffic from a training on one rank.
void tell_rows(const char* name, const Shape& rows) {
  TraceScope scope(name, TraceKind::communication);
  scope.detail("rows of ", rows.row_size(), " numbers");
}

/// Divides the local shard into parts that are computed between the halo stages, while rows are in flight.
/// The division depends on sizes only, not on which messages have arrived.
class LocalParts {
 public:
  /// `rows`: how many there are to divide.
  LocalParts(const ShardKernel& kernel, std::size_t stages, Index rows, FunctionRef<void(Index, Index)> run)
      : rows_(rows), stages_(std::max<Index>(static_cast<Index>(stages), 1)), run_(run) {
    parts_ = kernel.takes_parts() ? std::clamp<Index>(rows / least_rows, 1, stages_) : 1;
  }
  /// Those that belong to stage `k`.
  void run_of_stage(std::size_t k) { run_until(static_cast<Index>(k) * parts_ / stages_ + 1); }
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

/// Computes the gradients of the sources of a stage, from row `first` of `rows` on, if they are required.
void compute_gradients(ShardKernel& kernel, const Stage& stage, TypedRows& rows, Index first,
                       bool accumulate) {
  if (!rows.defined() || kernel.writes(rows.type()))
    return kernel.backward(stage, rows.numbers(first), accumulate);
  TypedRows to = rows.slice_rows(first, first + stage.size());
  Tensor sums(to.shape());
  kernel.backward(stage, sums.data(), false);
  add_rows(sums, to, accumulate);
}

/// The stage [begin, end) of a shard, with rows from row `first` of `rows` on, if they are defined.
Stage stage_of(const GraphShard& shard, Index begin, Index end, const TypedRows& rows, Index first) {
  return {shard, begin, end, rows.numbers(first)};
}

/// A stage as the kernel reads it: with rows of `row_size` reals in place of bfloat16 unless it reads those.
class ReadableStage {
 public:
  ReadableStage(const ShardKernel& kernel, const Stage& stage, Index row_size) : stage_(stage) {
    const Bfloat16* const rounded = stage.rows.bfloat16();
    if (rounded == nullptr || kernel.reads_bfloat16()) return;
    constexpr Index grain = 1 << 15;
    wide_ = Tensor(Shape{stage.size(), row_size});
    parallel_for(wide_.size(), grain,
                 [&](Index begin, Index end) { widen(rounded + begin, end - begin, wide_.data() + begin); });
    stage_.rows = std::as_const(wide_).data();
  }
  [[nodiscard]] const Stage& operator*() const { return stage_; }

 private:
  Stage stage_;
  Tensor wide_;
};

/// The rows of `src` from row `first` on: those of the halo, if they are in memory.
TypedRows rows_behind(const TypedRows& src, Index first) {
  return src.defined() && first < src.num_rows() ? src.slice_rows(first, src.num_rows()) : TypedRows();
}

}  // namespace

Driver::Driver(std::shared_ptr<const ShardedGraph> graph, const GraphOptions& options, bool keeps_rows)
    : graph_(std::move(graph)), options_(options_of_operation(options)) {
  if (graph_->holds_halo()) return;  // nothing travels
  draws_ = HaloDraws::of_next_operation(options_);
  if (keeps_rows && keeps_halo_rows(options)) kept_ = std::make_shared<std::vector<HaloRows>>();
}

void Driver::forward(const TypedRows& src, ShardKernel& kernel) const {
  ForwardPass(*this, src).finish(kernel);
}

void Driver::backward(const TypedRows& src, const Shape& src_shape, ShardKernel& kernel,
                      const GradientPtr& gradient) const {
  BackwardPass pass;
  pass.start(*this, src, src_shape, kernel, gradient);
  pass.finish(gradient);
}

void Driver::backward(const TypedRows& src, const Shape& src_shape, ShardKernel& kernel, Tensor* grad_src,
                      bool accumulate, ReduceOp op) const {
  kernel.begin_backward();
  BackwardPass pass;
  const TypedRows rows = grad_src != nullptr ? TypedRows(*grad_src) : TypedRows();
  pass.run(*this, src, src_shape, kernel, rows, accumulate, op);
  pass.end(rows);
}

ForwardPass::ForwardPass(const Driver& driver, const TypedRows& src) : driver_(driver), src_(src) {
  const GraphTopology& graph = driver_.graph();
  if (src.defined() && !driver_.graph_->holds_halo()) tell_rows("source rows", src.shape());
  if (src.defined() && driver_.rows_travel()) {
    if (driver_.kept_ != nullptr) driver_.kept_->clear();
    GraphPlan plan(graph, driver_.options_, driver_.draws_, src.shape(),
                   {.fetch = true, .fetched_type = src.type()});
    rows_.emplace(graph.remote, graph.comm, src, std::move(plan.fetch), driver_.kept_.get());
  } else {
    rows_.emplace(graph.remote, rows_behind(src, graph.local.num_src_rows));
  }
  rows_->start(nullptr);
}

void ForwardPass::finish(ShardKernel& kernel) {
  const GraphShard& local = driver_.graph().local;
  kernel.begin();
  const ReadableStage whole(kernel, stage_of(local, 0, local.num_src_rows, src_, 0), row_size());
  const auto run_part = [&](Index begin, Index end) {
    Stage part = *whole;
    if (begin > 0 || end < local.num_dst) part.first_row = begin, part.end_row = end;
    kernel.accumulate(part);
  };
  LocalParts parts(kernel, rows_->num_stages(), local.num_dst, run_part);
  for (std::size_t k = 0; k < rows_->num_stages(); ++k) {
    parts.run_of_stage(k);
    {
      const Stage stage = rows_->next();
      TraceScope scope("remote shard", TraceKind::compute);
      describe(scope, stage);
      kernel.accumulate(*ReadableStage(kernel, stage, row_size()));
    }
    rows_->release();
  }
  parts.run_all();
  rows_->finish();
  kernel.finish();
}

void ForwardPass::discard() {
  for (std::size_t k = 0; k < rows_->num_stages(); ++k) {
    (void)rows_->next();
    rows_->release();
  }
  rows_->finish();
}

void BackwardPass::start(const Driver& driver, const TypedRows& src, const Shape& src_shape,
                         ShardKernel& kernel, const GradientPtr& gradient) {
  kernel.begin_backward();  // before there is memory for the gradient: kernels give up what they kept
  if (gradient == nullptr) return run(driver, src, src_shape, kernel, {}, false, ReduceOp::sum);
  stage_type_ = kernel.gradient_type(gradient->type());
  const bool exact = stage_type_ == NumberType::exact_sums, travels = driver.rows_travel();
  if (exact || (stage_type_ != NumberType::reals && travels)) {
    const bool keeps = exact && (travels || !kernel.writes(NumberType::reals));  // several sums of a row
    sums_ = TypedRows(src_shape, keeps ? NumberType::exact_sums : NumberType::reals);
    return run(driver, src, src_shape, kernel, sums_, false, ReduceOp::sum);
  }
  const auto run_into = [&](TypedRows& sum, bool accumulate) {
    run(driver, src, src_shape, kernel, sum, accumulate, ReduceOp::sum);
  };
  if (stage_type_ == NumberType::bfloat16) return gradient->add_rows(run_into);
  gradient->add([&](Tensor& sum, bool accumulate) {
    TypedRows rows = sum;
    run_into(rows, accumulate);
  });
}

void BackwardPass::run(const Driver& driver, const TypedRows& src, const Shape& src_shape,
                       ShardKernel& kernel, TypedRows grad_src, bool accumulate, ReduceOp op) {
  const GraphTopology& graph = driver.graph();
  const bool reads_rows = kernel.needs_source_in_backward(), travels = driver.rows_travel();
  if (!driver.graph_->holds_halo() && (reads_rows || grad_src.defined()))
    tell_rows(!grad_src.defined() ? "source rows again"
              : reads_rows        ? "source rows and gradients"
                                  : "gradients of source rows",
              src_shape);
  const bool kept = travels && reads_rows && driver.kept_ != nullptr;
  const bool fetches = travels && reads_rows && !kept;
  const bool pushes = travels && grad_src.defined();
  GraphPlan plan(graph, driver.options_, driver.draws_, src_shape,
                 {.fetch = fetches,
                  .push = pushes,
                  .kept = kept,
                  .fetched_type = src.type(),
                  .pushed_type = stage_type_});
  if (pushes) {
    if (!accumulate) grad_src.set_zero();  // gradients of others come at any time
    accumulate = true;
    push_stages_ = plan.push.halo;
    push_.emplace(graph.comm, grad_src.shape(), std::move(plan.push), HaloStart::later, op);
  }
  if (fetches)
    rows_.emplace(graph.remote, graph.comm, src, std::move(plan.fetch), nullptr);
  else if (kept)
    rows_.emplace(graph.remote, *driver.kept_);
  else if (pushes)
    rows_.emplace(graph.remote, push_stages_);
  else
    rows_.emplace(graph.remote, reads_rows ? rows_behind(src, graph.local.num_src_rows) : TypedRows());

  const auto run_part = [&](Index begin, Index end) {
    const Stage part = stage_of(graph.local, begin, end, reads_rows ? src : TypedRows(), begin);
    compute_gradients(kernel, *ReadableStage(kernel, part, src_shape.row_size()), grad_src, begin,
                      accumulate);
  };
  LocalParts parts(kernel, rows_->num_stages(), graph.local.num_src_rows, run_part);
  // Gradients of halo rows come first if the rows are here: they travel while the local shard is computed.
  const bool stage_first = travels && !fetches && (reads_rows || pushes);
  rows_->start(push_ ? &*push_ : nullptr);
  in_flight_ = pushes || fetches;
  for (std::size_t k = 0; k < rows_->num_stages(); ++k) {
    if (!stage_first) parts.run_of_stage(k);
    {
      const ReadableStage readable(kernel, rows_->next(), src_shape.row_size());
      const Stage& stage = *readable;
      TraceScope scope("remote shard", TraceKind::compute);
      describe(scope, stage);
      if (push_)
        send(stage, src_shape, kernel, grad_src);
      else
        compute_gradients(kernel, stage, grad_src, graph.local.num_src_rows + stage.begin, accumulate);
    }
    rows_->release();
    if (stage_first && kernel.takes_parts()) parts.run_of_stage(k);
  }
  parts.run_all();
  kernel.finish_backward();
}

/// Computes and sends the gradients of a stage, which is one stage of the push or several.
void BackwardPass::send(const Stage& stage, const Shape& src_shape, ShardKernel& kernel,
                        const TypedRows& grad_src) {
  for (Index begin = stage.begin; begin < stage.end;) {
    const HaloStage& part = push_stages_.at(next_++);
    require(part.begin == begin && part.end <= stage.end, "a push stage of rows ", part.begin, " to ",
            part.end, " does not divide the stage of rows ", stage.begin, " to ", stage.end);
    TypedRows gradient(src_shape.with_rows(part.size()), stage_type_);
    compute_gradients(kernel, stage.of_sources(part.begin, part.end, src_shape.row_size()), gradient, 0,
                      false);
    push_->send(std::move(gradient), grad_src);
    begin = part.end;
  }
}

void BackwardPass::fail() noexcept {
  failure_ = std::current_exception();
  push_.reset();
  rows_.reset();
}

void BackwardPass::finish(const GradientPtr& gradient) {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (gradient == nullptr) return end({});
  if (sums_.defined()) {
    end(sums_);
    if (stage_type_ == NumberType::exact_sums)  // rounded first: another order of addition has the same bits
      return gradient->add(std::exchange(sums_, {}).to_tensor());
    if (sums_.is_real() && !gradient->defined())
      gradient->add(std::move(sums_).as(gradient->type()));
    else
      gradient->add_rows([&](TypedRows& sum, bool accumulate) { add_rows(sums_, sum, accumulate); });
    sums_ = {};
  } else if (push_) {
    gradient->add([&](Tensor& sum, bool) { end(sum); });
  } else {
    end({});
  }
}

void BackwardPass::end(TypedRows grad_src) {
  if (push_) push_->finish(std::move(grad_src));  // before the fetch: see HaloPush::finish()
  rows_->finish();
}

SourceRows::SourceRows(const GraphShard& remote, TypedRows rows) : remote_(remote), rows_(std::move(rows)) {
  if (remote.num_src_rows > 0) stages_.push_back({0, remote.num_src_rows});
}
SourceRows::SourceRows(const GraphShard& remote, PassVector<HaloStage> stages)
    : remote_(remote), stages_(std::move(stages)) {}
SourceRows::SourceRows(const GraphShard& remote, const std::vector<HaloRows>& kept)
    : remote_(remote), kept_(&kept) {
  for (const HaloRows& stage : kept) stages_.push_back(stage.stage);
}
SourceRows::SourceRows(const GraphShard& remote, const Communicator& comm, const TypedRows& owned,
                       HaloPlan plan, std::vector<HaloRows>* keep)
    : remote_(remote), stages_(plan.halo), keep_(keep) {
  fetch_.emplace(comm, owned, std::move(plan), HaloStart::later);
}

void SourceRows::start(HaloPush* push) {
  if (fetch_)
    fetch_->start(push);
  else if (push != nullptr)
    push->start();
}

Stage SourceRows::next() {
  const std::size_t k = next_++;
  const HaloStage& stage = stages_[k];
  if (fetch_) held_ = *fetch_->next();
  const TypedRows& rows = fetch_ ? held_.rows : kept_ != nullptr ? (*kept_)[k].rows : rows_;
  return {remote_, stage.begin, stage.end, rows.numbers()};
}

void SourceRows::release() {
  if (!fetch_) return;
  if (keep_ != nullptr) keep_->push_back(std::move(held_));
  held_ = {};
  fetch_->release();
}

void SourceRows::finish() {
  if (fetch_) fetch_->finish();
}
}}  // namespace sar
