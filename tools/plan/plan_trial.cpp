// SPDX-License-Identifier: MIT
#include "plan_trial.hpp"

#include "plan_traffic.hpp"
#include "sparse_trial.hpp"
#include "train/train_node_steps.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
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

using Json = nlohmann::ordered_json;

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

/// Accounted bytes of a training step: at its peak, and at the points where halo rows would be held.
struct HeldBytes {
  double peak = 0, fetch = 0, push = 0, rest = 0;
};

/// A training on a generated graph with `nodes` nodes per rank. All members are collective.
class Trial {
 public:
  Trial(const Communicator& comm, const TrainOptions& o, const Widths& widths, Index nodes, double degree)
      : o_(o), widths_(widths), live_before_(static_cast<double>(live_bytes())) {
    NodeData data = make_sbm(comm, {.nodes = nodes * comm.size(),
                                    .degree = degree,
                                    .classes = widths.classes,
                                    .features = widths.stored > 0 ? 1 : widths.features});
    if (widths.stored > 0) make_features_sparse(data, widths.features, widths.stored);
    Graph graph = construct_full_graph(comm, data, o.graph_options);
    if (o.model.attention_dropout == 0) graph.drop_edge_ids();
    loaded_.emplace(TrainingGraph{.data = std::move(data),
                                  .edges = {},
                                  .graph = std::move(graph),
                                  .relations = {},
                                  .types_of_input = {},
                                  .model = o.model,
                                  .gen = Generator(o.seed)});
    loaded_->input = std::make_unique<NodeInput>(comm, o_, loaded_->data, Variable());
    steps_ = std::make_unique<NodeSteps>(*loaded_, o_);
    optimizer_ = make_optimizer(o, steps_->model());
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

  /// Returns the bytes of one more step.
  [[nodiscard]] HeldBytes held() {
    start_trace(steady_nanoseconds());
    step();
    stop_trace();
    HeldBytes held{.peak = static_cast<double>(peak_bytes()) - live_before_};
    const RecordedTrace trace = recorded_trace();
    std::int64_t backward = std::numeric_limits<std::int64_t>::max();
    for (const auto& event : trace.events)
      if (event.name == std::string_view("backward")) backward = std::min(backward, event.begin);
    for (const auto& event : trace.events) {
      const std::string_view name = event.name;
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
  [[nodiscard]] double added_to() const {
    const double others = loaded_->graph.comm().size() - 1, cut = edges() * others / (others + 1);
    const PartShape part{.nodes = nodes(),
                         .in_edges = edges(),
                         .cut_edges = cut,
                         .halo_nodes = listed_rows(nodes() * others, cut)};
    const ModelSize model = model_size(o_, widths_);
    return pass_of(o_, model, {part, loaded_->graph.comm().size(), nodes()}, true).added_to;
  }

 private:
  TrainOptions o_;
  Widths widths_;
  double live_before_;
  std::optional<TrainingGraph> loaded_;
  std::unique_ptr<NodeSteps> steps_;
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
  const double added = shared.added_to(), more_added = staged.added_to() - added;
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

Json to_json(const Linear2& line) {
  return {{"per_node", line.per_node}, {"per_edge", line.per_edge}};
}

/// Visits the fields of a file of rates: `visit(name, number)` and `visit(name, line)`.
template <class R, class Visit>
void for_each_rate(R& rates, const Visit& visit) {
  visit("nodes", rates.nodes);
  visit("degree", rates.degree);
  visit("forward_seconds", rates.forward);
  visit("backward_seconds", rates.backward);
  visit("evaluation_seconds", rates.evaluation);
  visit("copied_bytes_per_second", rates.copied_bytes);
  visit("exchange_seconds_per_byte", rates.byte_seconds);
  visit("exchange_seconds_per_added_byte", rates.added_byte_seconds);
  visit("exchange_seconds_per_step", rates.step_seconds);
  visit("peak_bytes", rates.peak);
  visit("fetch_bytes", rates.fetch);
  visit("push_bytes", rates.push);
  visit("rest_bytes", rates.rest);
  visit("index_bytes", rates.index);
  visit("parameters", rates.parameters);
}

std::string to_text(const Rates& rates) {
  Json json{{"model", rates.model}, {"threads", rates.threads}, {"ranks", rates.ranks}};
  struct Writer {
    Json& json;
    void operator()(const char* name, double number) const { json[name] = number; }
    void operator()(const char* name, const Linear2& line) const { json[name] = to_json(line); }
  };
  for_each_rate(rates, Writer{json});
  return json.dump(2) + "\n";
}

/// Throws InputError.
Rates parse_rates(const std::string& text, const std::string& file) {
  constexpr const char* expected = "a file that plan --rates has written";
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  require<InputError>(!json.is_discarded(), file, ": the file is no JSON, expected ", expected);
  const auto number = [&](const nlohmann::json& of, const char* name) {
    const bool has = of.is_object() && of.contains(name) && of[name].is_number();
    const double value = has ? of[name].get<double>() : -1;
    require<InputError>(value >= 0 && std::isfinite(value), file, ": there is no number '", name,
                        "' of 0 or more, expected ", expected);
    return value;
  };
  Rates rates;
  require<InputError>(json.is_object() && json.contains("model") && json["model"].is_string(), file,
                      ": there is no text 'model', expected a file that plan --rates has written");
  rates.model = json["model"].get<std::string>();
  const double threads = number(json, "threads");
  require<InputError>(threads >= 1 && threads <= 1024, file, ": 'threads' is ", threads,
                      ", expected 1 to 1024");
  rates.threads = static_cast<int>(threads);
  const double ranks = number(json, "ranks");
  require<InputError>(ranks >= 1 && ranks <= 1 << 20, file, ": 'ranks' is ", ranks,
                      ", expected 1 to 1048576");
  rates.ranks = static_cast<int>(ranks);
  for_each_rate(rates, [&]<class T>(const char* name, T& value) {
    if constexpr (std::is_same_v<T, Linear2>) {
      require<InputError>(json.contains(name), file, ": there is no '", name,
                          "', expected a file that plan --rates has written");
      value = {number(json[name], "per_node"), number(json[name], "per_edge")};
    } else {
      value = number(json, name);
    }
  });
  require<InputError>(rates.copied_bytes > 0, file, ": 'copied_bytes_per_second' is 0, expected more");
  return rates;
}

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

Rates measure_rates(const Communicator& comm, const TrainOptions& o, const Widths& widths, double nodes,
                    double degree) {
  constexpr double most_row_bytes = 1 << 25, most_degree = 64;  // bounds of the widest tensor
  constexpr double least_nodes = 4096, least_degree = 8;        // of steps longer than the noise of the clock
  const double features = widths.stored > 0 ? 2 * widths.stored : static_cast<double>(widths.features);
  const double rows = static_cast<double>(std::max(o.model.hidden, widths.classes));
  const double width = std::max(features, rows) * sizeof(real);
  const double fewest = static_cast<double>(std::max<Index>(2 * widths.classes, 64));
  const auto n =
      static_cast<Index>(std::max(fewest, std::min(std::max(nodes, least_nodes), most_row_bytes / width)));
  const double d = std::clamp(degree, least_degree, std::min(most_degree, static_cast<double>(n) / 2));
  const Communicator self = Communicator::self();
  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(self));
  const MatmulPrecisionScope precision(o.matmul_precision);
  const MixedPrecisionScope mixed(o.mixed_precision);
  Trial few(self, o, widths, n, d / 2);
  for (int i = 0; i < 2; ++i) few.step(), few.evaluate();  // fill the caches of the graph and of the layers
  const HeldBytes of_few = few.held();
  Trial many(self, o, widths, n, d);
  for (int i = 0; i < 2; ++i) many.step(), many.evaluate();
  const HeldBytes of_many = many.held();
  std::vector<Trial*> trials{&few, &many};
  std::optional<Trial> tiny, shared, staged;  // on all ranks together
  if (comm.size() > 1) {
    TrainOptions usual = o;
    usual.graph_options.max_halo_bytes = 0;
    tiny.emplace(comm, usual, widths, static_cast<Index>(fewest), d);
    shared.emplace(comm, usual, widths, n, d);
    staged.emplace(comm, with_small_stages(o, n), widths, n, d);
    for (Trial* trial : {&*tiny, &*shared, &*staged}) {
      for (int i = 0; i < 2; ++i) trial->step(), trial->evaluate();
      trials.push_back(trial);
    }
  }
  for (Trial* trial : trials) trial->forget_seconds();
  time_steps(comm, trials);

  Rates rates{.model = describe_model(o, widths), .threads = num_threads(), .ranks = comm.size()};
  rates.nodes = many.nodes();
  rates.degree = many.edges() / many.nodes();
  rates.parameters = many.parameters();
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
  const double weights = 4.0 * sizeof(real) * rates.parameters;
  const auto bytes = [&](double HeldBytes::*what) {
    return fit(few, of_few.*what - weights, many, of_many.*what - weights);
  };
  rates.peak = bytes(&HeldBytes::peak);
  rates.fetch = bytes(&HeldBytes::fetch);
  rates.push = bytes(&HeldBytes::push);
  rates.rest = bytes(&HeldBytes::rest);
  rates.index = fit(few, few.index_bytes(), many, many.index_bytes());
  return rates;
}

Rates read_or_measure(const Communicator& comm, const std::string& file, const TrainOptions& o,
                      const Widths& widths, double nodes, double degree) {
  const std::string model = describe_model(o, widths);
  std::string text;
  comm.agree([&] {
    if (comm.rank() != 0 || file.empty()) return;
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return check_writable(file);
    text = read_text(file, "a file that plan --rates has written");
    const Rates found = parse_rates(text, file);
    require<InputError>(found.model == model, file, ": the rates are of '", found.model, "', expected '",
                        model, "' or a file that is not there yet");
  });
  text = comm.broadcast(text, 0);
  if (!text.empty()) return parse_rates(text, file);
  const Rates rates = comm.agree([&] { return measure_rates(comm, o, widths, nodes, degree); });
  text = comm.broadcast(to_text(rates), 0);
  comm.agree([&] {
    if (comm.rank() == 0 && !file.empty()) write_text(file, text);
  });
  return parse_rates(text, file);
}

}  // namespace sar::tools
