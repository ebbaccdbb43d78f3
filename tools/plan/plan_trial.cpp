// SPDX-License-Identifier: MIT
#include "plan_rates.hpp"

#include "formats/shared_texts.hpp"
#include "train/train_graph.hpp"
#include "train/train_steps.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

/// Measures processor time with one thread (other programs do not disturb it), else wall time.
struct Seconds {
  double wall = 0, counted = 0;
};
Seconds seconds_of(FunctionRef<void()> work) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  work();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double busy = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  return {wall, num_threads() == 1 ? std::min(wall, busy) : wall};
}

/// A training step: accounted bytes at its peak and at the points where halo rows would be held, and what
/// it exchanges.
struct RecordedStep {
  double peak = 0, fetch = 0, push = 0, rest = 0;
  std::vector<EdgePass> edges = {};
};

/// The names that graph/message/driver.cpp gives passes over the edges.
constexpr std::pair<std::string_view, EdgePass> pass_names[] = {
    {"source rows", {.fetches = true}},
    {"source rows again", {.is_backward = true, .fetches = true}},
    {"gradients of source rows", {.is_backward = true, .pushes = true}},
    {"source rows and gradients", {.is_backward = true, .fetches = true, .pushes = true}}};

/// Replaces the features by sparse rows of `columns` values, of which each row stores `stored`, at least one.
/// They are at equal distances, and the first one depends on the node.
void make_features_sparse(NodeData& data, Index columns, double stored) {
  const Index in_row = std::clamp<Index>(std::llround(stored), 1, columns);
  Array<Index> offsets{0};
  Array<std::int32_t> at;
  const Random random({});
  for (const Index id : data.original_ids) {
    const auto first =
        static_cast<Index>(random.bits(static_cast<std::uint64_t>(id)) % static_cast<std::uint64_t>(columns));
    for (Index k = 0; k < in_row; ++k)
      at.push_back(static_cast<std::int32_t>((first + k * columns / in_row) % columns));
    offsets.push_back(std::ssize(at));
  }
  Array<real> values(at.size(), real{1});
  data.features = {};
  data.sparse_features =
      std::make_shared<const SparseMatrix>(columns, std::move(offsets), std::move(at), std::move(values));
}

/// A training on a generated graph with `nodes` nodes per rank. All members are collective.
class Trial {
 public:
  Trial(const Communicator& comm, const TrainOptions& o, const Widths& widths, Index nodes, double degree)
      : o_(o), live_before_(static_cast<double>(live_bytes())) {
    NodeData data = make_sbm(comm, {.nodes = nodes * comm.size(),
                                    .degree = degree,
                                    .classes = widths.classes,
                                    .features = widths.stored > 0 ? 1 : widths.features});
    if (widths.stored > 0) make_features_sparse(data, widths.features, widths.stored);
    Graph graph = construct_full_graph(comm, data, o.graph_options);
    std::vector<GraphRelations> relations = generate_relations(graph, data, o);
    if (o.model.attention_dropout == 0) graph.drop_edge_ids();
    loaded_.emplace(TrainingGraph{.data = std::move(data),
                                  .graph = std::move(graph),
                                  .relations = std::move(relations),
                                  .model = o.model,
                                  .gen = Generator(o.seed)});
    loaded_->input = std::make_unique<NodeInput>(comm, o_, loaded_->data, Variable());
    steps_ = make_node_steps(*loaded_, o_);
    optimizer_ = make_optimizer(o, *steps_);
  }

  void step() {
    EpochTimer timer(loaded_->graph.comm());
    Epoch epoch{.epoch = 1};
    const Seconds seconds =
        seconds_of([&] { steps_->epoch(*optimizer_, epoch, timer, {}, [](const EpochProgress&, Index) {}); });
    timer.finish(epoch);
    const double counted = seconds.counted / seconds.wall;
    sent_bytes_ = static_cast<double>(epoch.comm_bytes) / loaded_->graph.comm().size();
    forward_ = std::min(forward_, counted * epoch.forward_seconds);
    backward_ = std::min(backward_, counted * epoch.backward_seconds);
  }
  void evaluate() {
    evaluation_ = std::min(evaluation_, seconds_of([&] { (void)steps_->evaluate(); }).counted);
  }
  void forget_seconds() { forward_ = backward_ = evaluation_ = std::numeric_limits<double>::infinity(); }

  /// Returns one more step.
  [[nodiscard]] RecordedStep recorded_step() {
    start_trace(steady_nanoseconds());
    step();
    stop_trace();
    RecordedStep held{.peak = static_cast<double>(peak_bytes()) - live_before_};
    const RecordedTrace trace = recorded_trace();
    std::int64_t backward = std::numeric_limits<std::int64_t>::max();
    for (const auto& event : trace.events)
      if (event.name == std::string_view("backward")) backward = std::min(backward, event.begin);
    for (const auto& event : trace.events) {
      const std::string_view name = event.name;
      const auto* const named = std::ranges::find(pass_names, name, [](const auto& of) { return of.first; });
      if (named != std::end(pass_names)) {
        held.edges.push_back(named->second);
        std::sscanf(event.detail, "rows of %td numbers", &held.edges.back().width);
      }
      if (name != "local shard" && name != "optimizer") continue;
      double& most = name == "optimizer" ? held.rest : event.begin < backward ? held.fetch : held.push;
      most = std::max(most, static_cast<double>(event.live) - live_before_);
    }
    return held;
  }

  [[nodiscard]] double nodes() const { return static_cast<double>(loaded_->graph.num_nodes()); }
  [[nodiscard]] double edges() const { return static_cast<double>(loaded_->graph.num_edges()); }
  [[nodiscard]] double index_bytes() const { return static_cast<double>(loaded_->graph.index_bytes()); }
  [[nodiscard]] double parameters() const {
    double numbers = 0;
    for (const Variable& x : steps_->model().parameters()) numbers += static_cast<double>(x.value().size());
    return numbers;
  }
  [[nodiscard]] double forward() const { return forward_; }
  [[nodiscard]] double backward() const { return backward_; }
  [[nodiscard]] double evaluation() const { return evaluation_; }
  /// Returns the bytes received per rank and step, averaged over the ranks.
  [[nodiscard]] double sent_bytes() const { return sent_bytes_; }
  /// Returns the bytes of result rows that stages add to in a step. The parts are as random ones, because
  /// nodes of a class are spread over all parts.
  [[nodiscard]] double added_to(std::span<const EdgePass> passes) const {
    const double others = loaded_->graph.comm().size() - 1, cut = edges() * others / (others + 1);
    const PartShape part{.nodes = nodes(),
                         .in_edges = edges(),
                         .cut_edges = cut,
                         .halo_nodes = listed_rows(nodes() * others, cut)};
    return pass_of(o_, passes, {part, loaded_->graph.comm().size(), nodes()}, true).added_to;
  }

 private:
  TrainOptions o_;
  double live_before_;
  std::optional<TrainingGraph> loaded_;
  std::unique_ptr<Steps> steps_;
  std::unique_ptr<Optimizer> optimizer_;
  double forward_ = std::numeric_limits<double>::infinity(), backward_ = forward_, evaluation_ = forward_;
  double sent_bytes_ = 0;
};

/// Fits per_node and per_edge to two measurements with equal numbers of nodes; neither is negative, and
/// per_edge not less than `least_per_edge`.
Linear2 fit(const Trial& few, double of_few, const Trial& many, double of_many, double least_per_edge = 0) {
  const double per_edge =
      std::max(least_per_edge, (of_many - of_few) / std::max(1.0, many.edges() - few.edges()));
  return {std::max(0.0, of_many - per_edge * many.edges()) / many.nodes(), per_edge};
}

/// Returns the copied bytes per second; a byte read and written counts once.
double copied_bytes() {
  const Tensor from = Tensor::full({Index{1} << 14, 1024}, 1);
  Tensor to = Tensor::zeros(from.shape());
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 5; ++repetition)
    best = std::min(best, seconds_of([&] { to.copy_from(from); }).counted);
  return static_cast<double>(from.bytes()) / best;
}

/// Times the trials in turns, so that noise of the machine affects all of them, on all ranks at the same
/// time.
void time_steps(const Communicator& comm, std::span<Trial* const> trials) {
  constexpr double enough_seconds = 1;  // per trial
  double spent = 0;
  for (int round = 0; round < 2 || (round < 20 && spent < enough_seconds); ++round)
    for (Trial* trial : trials) {
      comm.barrier();
      const Seconds seconds = seconds_of([&] {
        trial->step();
        trial->evaluate();
      });
      spent += comm.all_reduce(seconds.wall, ReduceOp::max) / static_cast<double>(trials.size());
    }
}

/// Returns the seconds of a training step minus the seconds of its nodes and edges; the maximum over the
/// ranks.
double beyond(const Communicator& comm, const Rates& rates, const Trial& trial) {
  const double alone =
      rates.forward(trial.nodes(), trial.edges()) + rates.backward(trial.nodes(), trial.edges());
  return comm.all_reduce(std::max(0.0, trial.forward() + trial.backward() - alone), ReduceOp::max);
}

/// Trains on all ranks together, with stages of a sixteenth of the usual size.
TrainOptions with_small_stages(const TrainOptions& o, Index nodes) {
  TrainOptions small = o;
  const double row_bytes = static_cast<double>(o.model.hidden) * sizeof(real), n = static_cast<double>(nodes);
  const double rows = std::min(n, stage_rows(n, n, row_bytes, 0, false).fetch) / 16;
  small.graph_options.max_halo_bytes = static_cast<Index>(std::max(1.0, rows) * row_bytes);
  return small;
}

/// Fits the costs of the exchange: per step, per byte of result rows that stages add to, and per received
/// byte. `unpacked`: bytes of a row in memory per byte on the wire.
void set_exchange(const Communicator& comm, Rates& rates, const Trial& tiny, const Trial& shared,
                  const Trial& staged, double unpacked) {
  rates.step_seconds = beyond(comm, rates, tiny);
  const double exchange = std::max(0.0, beyond(comm, rates, shared) - rates.step_seconds);
  const double more = beyond(comm, rates, staged) - rates.step_seconds - exchange;
  const double added = shared.added_to(rates.edges), more_added = staged.added_to(rates.edges) - added;
  if (more_added > 0)  // at most the whole exchange
    rates.added_byte_seconds = std::min(std::max(0.0, more) / more_added, exchange / added);
  rates.byte_seconds = std::max(0.0, exchange - rates.added_byte_seconds * added) /
                       std::max(1.0, unpacked * (shared.sent_bytes() - tiny.sent_bytes()));
}

/// Returns the mean over the ranks, which compute at the same time.
void take_mean(const Communicator& comm, Rates& rates) {
  double* const seconds[] = {&rates.forward.per_node,    &rates.forward.per_edge,
                             &rates.backward.per_node,   &rates.backward.per_edge,
                             &rates.evaluation.per_node, &rates.evaluation.per_edge};
  for (double* rate : seconds) *rate = comm.all_reduce(*rate) / comm.size();
  rates.copied_bytes = comm.all_reduce(rates.copied_bytes, ReduceOp::min);
}

/// Nodes and degree of a trial: of steps longer than the noise of the clock, with tensors of bounded width.
struct TrialSize {
  Index fewest, nodes;
  double degree;
};

TrialSize size_of_trial(const TrainOptions& o, const Widths& widths, double nodes, double degree) {
  constexpr double most_row_bytes = 1 << 25, most_degree = 64;
  constexpr double least_nodes = 4096, least_degree = 8;
  const double features = widths.stored > 0 ? 2 * widths.stored : static_cast<double>(widths.features);
  const double rows = static_cast<double>(std::max(o.model.hidden, widths.classes));
  const double width = std::max(features, rows) * sizeof(real);
  const double fewest = static_cast<double>(std::max<Index>(2 * widths.classes, 64));
  const auto n =
      static_cast<Index>(std::max(fewest, std::min(std::max(nodes, least_nodes), most_row_bytes / width)));
  return {static_cast<Index>(fewest), n,
          std::clamp(degree, least_degree, std::min(most_degree, static_cast<double>(n) / 2))};
}

/// Two trials of this rank alone, after the steps that fill the caches of the graph and of the layers.
class TrialsAlone {
 public:
  TrialsAlone(const TrainOptions& o, const Widths& widths, const TrialSize& size)
      : few_(Communicator::self(), o, widths, size.nodes, size.degree / 2),
        of_few_(warm(few_).recorded_step()),
        many_(Communicator::self(), o, widths, size.nodes, size.degree),
        of_many_(warm(many_).recorded_step()) {}

  /// Returns two more steps and evaluations of a trial.
  static Trial& warm(Trial& trial) {
    for (int i = 0; i < 2; ++i) trial.step(), trial.evaluate();
    return trial;
  }

  [[nodiscard]] Trial& few() { return few_; }
  [[nodiscard]] Trial& many() { return many_; }

  /// Returns rates without seconds.
  [[nodiscard]] Rates rates(const TrainOptions& o, const Widths& widths) const {
    Rates rates{.model = describe_model(o, widths), .threads = num_threads()};
    rates.nodes = many_.nodes();
    rates.degree = many_.edges() / many_.nodes();
    rates.parameters = many_.parameters();
    rates.edges = of_many_.edges;
    const double weights = 4.0 * sizeof(real) * rates.parameters;
    const auto bytes = [&](double RecordedStep::*what) {
      return fit(few_, of_few_.*what - weights, many_, of_many_.*what - weights);
    };
    rates.peak = bytes(&RecordedStep::peak);
    rates.fetch = bytes(&RecordedStep::fetch);
    rates.push = bytes(&RecordedStep::push);
    rates.rest = bytes(&RecordedStep::rest);
    rates.index = fit(few_, few_.index_bytes(), many_, many_.index_bytes());
    return rates;
  }

 private:
  Trial few_;
  RecordedStep of_few_;
  Trial many_;
  RecordedStep of_many_;
};

}  // namespace

std::string describe_model(const TrainOptions& o, const Widths& widths) {
  const ModelDescription& m = o.model;
  return concat(describe_layers(m.with_widths(widths.features, widths.classes)),
                widths.stored > 0 ? concat(", ", std::ceil(widths.stored), " features of a node stored") : "",
                ", dropout ", m.dropout,
                m.attention_dropout > 0 ? concat(", attention dropout ", m.attention_dropout) : "", ", ",
                to_string(o.matmul_precision), o.graph_options.reproducible ? ", sums in double" : "", ", ",
                8 * sizeof(real), " bits");
}

Rates measure_memory(const TrainOptions& o, const Widths& widths, double nodes, double degree) {
  return TrialsAlone(o, widths, size_of_trial(o, widths, nodes, degree)).rates(o, widths);
}

Rates measure_rates(const Communicator& comm, const TrainOptions& o, const Widths& widths, double nodes,
                    double degree) {
  const TrialSize size = size_of_trial(o, widths, nodes, degree);
  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(Communicator::self()));
  const MatmulPrecisionScope precision(o.matmul_precision);
  const MixedPrecisionScope mixed(o.mixed_precision);
  TrialsAlone alone(o, widths, size);
  Trial &few = alone.few(), &many = alone.many();
  std::vector<Trial*> trials{&few, &many};
  std::optional<Trial> tiny, shared, staged;  // on all ranks together
  if (comm.size() > 1) {
    TrainOptions usual = o;
    usual.graph_options.max_halo_bytes = 0;
    tiny.emplace(comm, usual, widths, size.fewest, size.degree);
    shared.emplace(comm, usual, widths, size.nodes, size.degree);
    staged.emplace(comm, with_small_stages(o, size.nodes), widths, size.nodes, size.degree);
    for (Trial* trial : {&*tiny, &*shared, &*staged}) trials.push_back(&TrialsAlone::warm(*trial));
  }
  for (Trial* trial : trials) trial->forget_seconds();
  time_steps(comm, trials);

  Rates rates = alone.rates(o, widths);
  rates.ranks = comm.size();
  rates.copied_bytes = copied_bytes();
  const double least = sizeof(real) / rates.copied_bytes;  // an edge moves a number or more
  rates.forward = fit(few, few.forward(), many, many.forward(), least);
  rates.backward = fit(few, few.backward(), many, many.backward(), least);
  rates.evaluation = fit(few, few.evaluation(), many, many.evaluation(), least);
  take_mean(comm, rates);
  constexpr double copies = 3;  // pack, send, receive; or send, receive, add
  rates.byte_seconds = copies / rates.copied_bytes;
  rates.added_byte_seconds = 1 / rates.copied_bytes;
  const double unpacked =
      static_cast<double>(o.model.hidden) * sizeof(real) / static_cast<double>(wire_bytes(o, o.model.hidden));
  if (comm.size() > 1) set_exchange(comm, rates, *tiny, *shared, *staged, unpacked);
  return rates;
}

Rates read_or_measure(const Communicator& comm, const std::string& file, const TrainOptions& o,
                      const Widths& widths, double nodes, double degree) {
  const std::string model = describe_model(o, widths);
  const std::string given = formats::shared_text(comm, [&]() -> std::string {
    std::error_code error;
    const bool is_there = std::filesystem::exists(file, error);
    if (!file.empty() && !is_there) check_writable(file);
    if (!is_there) return "";
    std::string text = read_text(file, "a file that plan --rates has written");
    const Rates found = parse_rates(text, file);
    require<InputError>(found.model == model, file, ": the rates are of '", found.model, "', expected '",
                        model, "' or a file that is not there yet");
    return text;
  });
  if (!given.empty()) return parse_rates(given, file);
  const Rates rates = comm.agree([&] { return measure_rates(comm, o, widths, nodes, degree); });
  const std::string measured = formats::shared_text(comm, [&] {
    if (!file.empty()) write_text(file, to_text(rates));
    return to_text(rates);
  });
  return parse_rates(measured, file);
}

}  // namespace sar::tools
