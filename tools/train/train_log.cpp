// SPDX-License-Identifier: MIT
#include "train_log.hpp"

#include "program.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <sstream>
#include <system_error>

namespace sar::tools {
namespace {

/// ", 7 classes", ", 112 labels a node, loss bce".
std::string describe_labels(const NodeData& data, const TaskOptions& o) {
  const std::string loss = ", loss " + name_in(label_losses, o.label_loss);
  switch (data.label_type) {
    case LabelType::binary:
      return concat(", ", data.num_outputs(), " labels a ", data.item, loss);
    case LabelType::values:
      return concat(", ", data.num_outputs(), data.num_outputs() == 1 ? " value" : " values", " a ",
                    data.item, loss);
    case LabelType::classes:
    case LabelType::automatic:
      break;
  }
  return concat(", ", data.num_classes, " classes");
}

/// " (sparse, 1.3 % of the values are not 0)", or nothing. Collective.
std::string describe_sparse(const Communicator& comm, const NodeInput& input) {
  const auto [stored_here, of_here] = input.stored_values();
  const auto stored = comm.all_reduce(static_cast<double>(stored_here));
  const auto of = comm.all_reduce(static_cast<double>(of_here));
  if (of == 0) return "";
  return formatted(" (sparse, %.2g %% of the values are not 0)", 100 * stored / of);
}

/// "MUTAG: 188 graphs, 3371 nodes, 7442 edges, 7 features, 2 classes; 2 ranks x 1 threads, ..., at most 95
/// graphs a rank"
std::string describe_samples(const Communicator& comm, const TrainingGraph& loaded, const TaskOptions& o,
                             Index most_graphs) {
  const SampleTask& task = *loaded.samples;
  const auto features = task.samples->nodes.tensors.find("features");
  std::string input;
  if (features != task.samples->nodes.tensors.end())
    input = concat(", ", features->second.row_size(), " features");
  if (!task.categories.empty()) input += concat(", ", task.categories.size(), " columns of categories");
  const std::string labels = loaded.potential ? concat(", energies", o.potential.has_forces ? ", forces" : "",
                                                       o.potential.has_stresses ? ", stresses" : "")
                                              : describe_labels(loaded.data, o);
  const std::string& item = loaded.data.item;
  return concat(loaded.data.name, ": ", loaded.data.book.num_nodes(), " ", item, "s, ", task.num_nodes,
                " nodes, ", task.num_edges, " edges", input, labels, "; ", comm.size(), " ranks x ",
                num_threads(), " threads, instruction set ", to_string(instruction_set()), ", at most ",
                most_graphs, " ", item, "s a rank");
}

/// Whether a line of a log is one of this run. With several runs, lines say their seed and split.
bool is_of_run(const nlohmann::ordered_json& line, const TrainOptions& o) {
  if (!o.has_several_runs()) return true;
  return line.contains("seed") && line["seed"] == o.seed && line.contains("split") &&
         line["split"] == o.run.split;
}

/// Returns the whole lines of a log without those of this run after an epoch, and without the ends of runs
/// that go on. `take` gets the earlier lines of this run.
std::string kept_lines(const std::string& file, const TrainOptions& o, int epoch,
                       FunctionRef<void(const nlohmann::ordered_json& line)> take) {
  std::string kept;
  std::istringstream in(read_text(file, "the log of the resumed run", Index{1} << 40));
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto object = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) continue;
    const bool has_epoch = object.contains("epoch") && object["epoch"].is_number_integer();
    const bool is_early = has_epoch && object["epoch"].get<std::int64_t>() <= epoch;
    const bool is_of_other = !is_of_run(object, o) && object.contains("seed");
    if (is_early || is_of_other) kept += line + "\n";
    if (is_early && !is_of_other) take(object);
  }
  return kept;
}

}  // namespace

EpochTimer::EpochTimer(const Communicator& comm) : comm_(comm), before_(comm.stats()) {
  reset_peak_bytes();
}

double EpochTimer::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void EpochTimer::finish(Epoch& epoch) const {
  const CommStats now = comm_.stats();
  double slowest[] = {elapsed(),
                      forward_,
                      backward_,
                      now.wait_seconds - before_.wait_seconds,
                      static_cast<double>(peak_bytes()),
                      steps_};
  comm_.all_reduce(std::span<double>(slowest), ReduceOp::max);
  epoch.seconds = slowest[0];
  epoch.forward_seconds = slowest[1];
  epoch.backward_seconds = slowest[2];
  epoch.comm_seconds = slowest[3];
  epoch.peak_bytes = static_cast<std::uint64_t>(slowest[4]);
  if (epoch.seeds > 0) epoch.seeds_per_second = static_cast<double>(epoch.seeds) / slowest[5];
  epoch.comm_bytes = comm_.all_reduce(now.bytes_sent - before_.bytes_sent);
}

Log::Log(const Communicator& comm, const TrainOptions& o, int epoch, bool resumed)
    : comm_(comm),
      o_(o),
      speaks_(comm.rank() == 0),
      metrics_(metric_names(o.task)),
      splits_(evaluated_splits(o.task)) {
  const std::string& file = o.log_file;
  comm.agree([&] {
    if (!speaks_) return;
    if (!o.curves.empty() || !o.tensorboard.empty()) curves_.emplace(o, epoch + 1);
    if (file.empty()) return;
    const bool continues = resumed || o.run.number > 0;
    std::error_code unreachable;
    if (continues && std::filesystem::is_regular_file(file, unreachable))
      write_text(file, kept_lines(file, o, epoch, [&](const nlohmann::ordered_json& line) {
                   if (curves_) curves_->add_earlier(line);
                 }));
    file_.emplace(file, /*append=*/continues);
  });
}

void Log::start(const TrainingGraph& loaded, const TrainOptions& o, const std::string& model) {
  const NodeData& data = loaded.data;
  const Graph& graph = loaded.graph;
  const auto most_nodes = comm_.all_reduce(graph.num_nodes(), ReduceOp::max);
  const auto most_edges = comm_.all_reduce(graph.num_edges(), ReduceOp::max);
  const std::string sparse = describe_sparse(comm_, *loaded.input);
  if (!speaks_) return;
  if (loaded.samples) {
    say(comm_, describe_samples(comm_, loaded, o.task, most_nodes));
    return say(comm_, model);
  }
  say(comm_, data.name, ": ", graph.num_global_nodes(), " nodes, ", graph.num_global_edges(), " edges",
      graph.edge_weight().defined() ? " with weights" : "", ", ", loaded.input->width(), " features", sparse,
      has_pairs(o.task.type) ? "" : describe_labels(data, o.task), "; ", comm_.size(), " ranks x ",
      num_threads(), " threads, instruction set ", to_string(instruction_set()), ", ",
      o.mixed_precision ? "mixed" : "full", " precision, products ",
      to_string(o.mixed_precision ? MatmulPrecision::medium : o.matmul_precision), ", halo format ",
      to_string(o.graph_options.halo_format), ", ",
      o.found.is_partitioned() ? "given" : to_string(o.data.partition), " partition, at most ", most_nodes,
      " nodes and ", most_edges, " edges a rank");
  if (!loaded.types.empty()) say(comm_, loaded.types);
  say(comm_, model);
  if (o.mfg && loaded.model.has_batch_norm())
    say(comm_, "--mfg: ", loaded.model.norm == "batch" ? "batch norm" : "the batch norm inside gin",
        " takes the mean and variance of the nodes that the training nodes or edges depend on, not of all "
        "nodes: this is another training than without --mfg");
}

void Log::add_scores(nlohmann::ordered_json& line, const std::vector<Scores>& scores) const {
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    for (const auto& [split, score] : splits_)
      line[split + "_" + metrics_[i]] = json_number(scores.empty() ? Scores().val : scores[i].*score);
}

void Log::before(const std::vector<Scores>& scores) {
  if (!speaks_) return;
  if (!o_.has_several_runs()) {
    std::printf("before epoch 1");
    print(scores);
    std::printf("\n");
    std::fflush(stdout);
  }
  nlohmann::ordered_json line = {{"epoch", 0}};
  add_scores(line, scores);
  write(line);
}

void Log::epoch(const Epoch& e, const RunResult& result) {
  if (!speaks_) return;
  if (!o_.has_several_runs()) {
    std::printf("epoch %4d/%d  loss %.6f", e.epoch, o_.epochs, e.loss);
    print(e.scores);
    if (e.seeds > 0) std::printf("  %td batches, %.0f seeds/s", e.batches, e.seeds_per_second);
    std::printf("  %.3f s  peak %.1f MB  %.0f s left\n", e.seconds, megabytes(e.peak_bytes),
                result.seconds / e.epoch * (o_.epochs - e.epoch));
    std::fflush(stdout);
  }
  nlohmann::ordered_json line = {{"epoch", e.epoch}, {"loss", e.loss}, {"lr", e.lr}};
  add_scores(line, e.scores);
  line.update({{"seconds", e.seconds},
               {"forward_seconds", e.forward_seconds},
               {"backward_seconds", e.backward_seconds},
               {"comm_seconds", e.comm_seconds},
               {"comm_bytes", e.comm_bytes},
               {"peak_bytes", e.peak_bytes},
               {"instruction_set", to_string(instruction_set())},
               {"halo_format", to_string(o_.graph_options.halo_format)}});
  if (e.seeds > 0) {
    line["batches"] = e.batches;
    const auto per_seed = [&](const char* name, Index rows) {
      if (rows > 0) line[name] = static_cast<double>(rows) / static_cast<double>(e.seeds);
    };
    per_seed("rows_per_seed", e.input_rows);
    per_seed("halo_rows_per_seed", e.halo_rows);
    line["seeds_per_second"] = e.seeds_per_second;
  }
  write(line);
  if (!curves_) return;
  try {
    curves_->add(line);
  } catch (const InputError& error) {
    fail(error.what(), "event file");
  }
}

/// "train 0.9  val 0.8  test 0.8", or with names of metrics "val auc 0.9 mrr 0.5".
void Log::print(const std::vector<Scores>& scores) const {
  for (const auto& [part, score] : splits_) {
    std::string text;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (std::isnan(scores[i].*score)) continue;
      text += (metrics_[i] == "acc" ? "" : " " + metrics_[i]) + formatted(" %.4f", scores[i].*score);
    }
    if (!text.empty()) std::printf("  %s%s", part.c_str(), text.c_str());
  }
}

std::string describe_best(const TrainOptions& o, const RunResult& result) {
  if (result.best_epoch == 0) return "";
  const std::string name = word_of(metric_names(o.task)[0]);
  return concat("best validation ", name, formatted(" %.4f", result.best[0].val), " in epoch ",
                result.best_epoch, " with test ", name, formatted(" %.4f", result.best[0].test));
}

void Log::summary(const TrainingGraph& loaded, const RunResult& result,
                  const nlohmann::ordered_json& groups) {
  const std::uint64_t rss = max_resident_bytes(comm_);
  const auto graph_bytes =
      comm_.all_reduce(static_cast<std::uint64_t>(loaded.graph.index_bytes()), ReduceOp::max);
  if (speaks_) {
    print_summary(result, rss);
    nlohmann::ordered_json line = {{"summary", true}, {"epochs", result.epochs}, {"seconds", result.seconds}};
    line["best_val_" + metrics_[0]] = json_number(result.best[0].val);
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      line["test_" + metrics_[i]] = json_number(result.best[i].test);
    for (std::size_t i = 0; i < metrics_.size(); ++i)
      line["last_test_" + metrics_[i]] = json_number(result.last[i].test);
    line.update({{"best_epoch", result.best_epoch},
                 {"peak_bytes", result.peak_bytes},
                 {"graph_bytes", graph_bytes},
                 {"max_rss_bytes", rss},
                 {"ids_are_original", loaded.data.ids_are_original},
                 {"train_unlabelled", loaded.unlabelled[0]},
                 {"val_unlabelled", loaded.unlabelled[1]},
                 {"test_unlabelled", loaded.unlabelled[2]}});
    if (!groups.is_null()) line["groups"] = groups;
    write(line);
  }
  comm_.agree([&] {
    if (curves_)
      curves_->draw(
          o_.has_several_runs() ? concat(loaded.data.name, ", ", name_of_run(o_)) : loaded.data.name, result);
    require<InputError>(failure_.empty(), failure_);
  });
}

void Log::print_summary(const RunResult& result, std::uint64_t rss) const {
  if (o_.has_several_runs())
    std::printf("run %d of %d, %s: ", o_.run.number + 1, o_.run.count, name_of_run(o_).c_str());
  std::printf("%d epochs in %.1f s", result.epochs, result.seconds);
  if (result.epochs > 0 && result.epochs < o_.epochs) std::printf(" (--stop-after %d)", o_.stop_after);
  const std::string best = describe_best(o_, result);
  if (!best.empty()) std::printf(", %s", best.c_str());
  if (!o_.has_several_runs())
    std::printf("; per rank at most %.1f MB in tensors, %.1f MB resident", megabytes(result.peak_bytes),
                megabytes(rss));
  std::printf("\n");
  std::fflush(stdout);
}

void Log::write(const nlohmann::ordered_json& line) {
  if (!file_) return;
  nlohmann::ordered_json whole;
  if (o_.has_several_runs()) whole = {{"seed", o_.seed}, {"split", o_.run.split}};
  whole.update(line);
  try {
    file_->add(whole.dump() + "\n");
  } catch (const InputError& error) {
    fail(error.what(), "log");
    file_.reset();
  }
}

void Log::fail(const std::string& message, const char* without) {
  failure_ = concat("the ", without, " is incomplete: ", message);
  std::fprintf(stderr, "train: %s; the training continues without the %s\n", message.c_str(), without);
}

void write_last_line(const Communicator& comm, const std::string& file, const nlohmann::ordered_json& line) {
  comm.agree([&] {
    if (comm.rank() == 0 && !file.empty()) LineFile(file, /*append=*/true).add(line.dump() + "\n");
  });
}

}  // namespace sar::tools
