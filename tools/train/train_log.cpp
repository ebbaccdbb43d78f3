#include "train_log.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <span>
#include <sstream>
#include <system_error>
#include <utility>

namespace sar::tools {
namespace {

long long integer(Index x) {
  return x;
}

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

/// JSON has no NaN.
nlohmann::json number(double x) {
  return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(nullptr);
}

/// " (sparse, 1.3 % of the values are not 0)", or nothing. Collective.
std::string describe_sparse(const Communicator& comm, const NodeInput& input) {
  const auto [stored_here, of_here] = input.stored_values();
  const auto stored = comm.all_reduce(static_cast<double>(stored_here));
  const auto of = comm.all_reduce(static_cast<double>(of_here));
  if (of == 0) return "";
  char text[64];
  std::snprintf(text, sizeof text, " (sparse, %.2g %% of the values are not 0)", 100 * stored / of);
  return text;
}

/// The lines of a log up to an epoch, whole ones.
std::string lines_until(const std::string& file, int epoch) {
  std::string kept;
  std::istringstream in(read_text(file, "the log of the resumed run", Index{1} << 40));
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool counts = object.is_object() && object.contains("epoch") && object["epoch"].is_number_integer();
    if (counts && object["epoch"].get<std::int64_t>() <= epoch) kept += line + "\n";
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

Log::Log(const Communicator& comm, const TrainOptions& o, const CheckpointInfo& start,
         const std::string& checkpoint)
    : comm_(comm),
      speaks_(comm.rank() == 0),
      epochs_(o.epochs),
      halo_format_(o.graph_options.halo_format),
      metrics_(metric_names(o.task)),
      smaller_is_better_(smaller_is_better(o.task)),
      parts_{{"train", &Scores::train}, {"val", &Scores::val}, {"test", &Scores::test}},
      best_(metrics_.size()) {
  if (o.task.type == TaskType::link) parts_.erase(parts_.begin());
  const std::string& file = o.log_file;
  if (!checkpoint.empty()) restore(start.extra, checkpoint);
  comm.agree([&] {
    if (!speaks_ || file.empty()) return;
    std::error_code unreachable;
    if (!checkpoint.empty() && std::filesystem::is_regular_file(file, unreachable))
      write_text(file, lines_until(file, start.epoch));
    file_.emplace(file, /*append=*/!checkpoint.empty());
  });
}

std::map<std::string, std::string> Log::progress() const {
  nlohmann::json progress{{"epoch", best_epoch_}, {"seconds", total_seconds_}, {"peak_bytes", largest_peak_}};
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    for (const auto& [part, score] : parts_) progress[part + "_" + metrics_[i]] = number(best_[i].*score);
  return {{"best", progress.dump()}};
}

void Log::restore(const std::map<std::string, std::string>& extra, const std::string& checkpoint) {
  const auto found = extra.find("best");
  const auto progress = nlohmann::json::parse(found == extra.end() ? "" : found->second, nullptr,
                                              /*allow_exceptions=*/false);
  const auto value = [&](const char* key, double least, double missing) {
    const bool has = progress.is_object() && progress.contains(key);
    if (has && progress[key].is_null()) return missing;
    const double number = has && progress[key].is_number() ? progress[key].get<double>() : -1;
    require<InputError>(number >= least && number <= 0x1p53, checkpoint, ": extra.best has no number '", key,
                        "' of ", least, " or more, expected a checkpoint that train has written");
    return number;
  };
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    for (const auto& [part, score] : parts_)
      best_[i].*score = value((part + "_" + metrics_[i]).c_str(), 0, Scores().val);
  best_epoch_ = static_cast<int>(std::min<double>(value("epoch", 0, 0), std::numeric_limits<int>::max()));
  total_seconds_ = value("seconds", 0, 0);
  largest_peak_ = static_cast<std::uint64_t>(value("peak_bytes", 0, 0));
}

void Log::start(const TrainingGraph& loaded, const TrainOptions& o, const std::string& model) {
  const NodeData& data = loaded.data;
  const GraphShardManager& graph = loaded.graph;
  ids_are_original_ = data.ids_are_original;
  unlabelled_ = loaded.unlabelled;
  const auto most_nodes = comm_.all_reduce(graph.num_nodes(), ReduceOp::max);
  const auto most_edges = comm_.all_reduce(graph.num_edges(), ReduceOp::max);
  const std::string sparse = describe_sparse(comm_, *loaded.input);
  if (!speaks_) return;
  std::printf(
      "%s: %lld nodes, %lld edges%s, %lld features%s%s; %d ranks x %d threads, instruction set %s, "
      "matmul precision %s, halo format %s, %s partition, at most %lld nodes and %lld edges a rank\n",
      printable(data.name).c_str(), integer(graph.num_global_nodes()), integer(graph.num_global_edges()),
      graph.edge_weight().defined() ? " with weights" : "", integer(loaded.input->width()), sparse.c_str(),
      o.task.type == TaskType::node ? concat(", ", data.num_classes, " classes").c_str() : "", comm_.size(),
      num_threads(), to_string(instruction_set()), to_string(o.matmul_precision),
      to_string(o.graph_options.halo_format),
      o.found.is_partitioned() ? "given" : to_string(o.data.partition), integer(most_nodes),
      integer(most_edges));
  if (!loaded.types.empty()) std::printf("%s\n", printable(loaded.types).c_str());
  std::printf("%s\n", model.c_str());
  std::fflush(stdout);
}

void Log::epoch(const Epoch& e) {
  total_seconds_ += e.seconds;
  largest_peak_ = std::max(largest_peak_, e.peak_bytes);
  if (is_better(e.scores)) best_ = e.scores, best_epoch_ = e.epoch;
  if (!speaks_) return;
  std::printf("epoch %4d/%d  loss %.6f", e.epoch, epochs_, e.loss);
  print(e.scores);
  if (e.seeds > 0) std::printf("  %lld batches, %.0f seeds/s", integer(e.batches), e.seeds_per_second);
  std::printf("  %.3f s  peak %.1f MB  %.0f s left\n", e.seconds, megabytes(e.peak_bytes),
              total_seconds_ / e.epoch * (epochs_ - e.epoch));
  std::fflush(stdout);
  nlohmann::ordered_json line = {{"epoch", e.epoch}, {"loss", e.loss}, {"lr", e.lr}};
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    for (const auto& [part, score] : parts_)
      line[part + "_" + metrics_[i]] = number(e.scores.empty() ? Scores().val : e.scores[i].*score);
  line.update({{"seconds", e.seconds},
               {"forward_seconds", e.forward_seconds},
               {"backward_seconds", e.backward_seconds},
               {"comm_seconds", e.comm_seconds},
               {"comm_bytes", e.comm_bytes},
               {"peak_bytes", e.peak_bytes},
               {"instruction_set", to_string(instruction_set())},
               {"halo_format", to_string(halo_format_)}});
  if (e.seeds > 0) {
    line["batches"] = e.batches;
    line["seeds_per_second"] = e.seeds_per_second;
  }
  write(line);
}

bool Log::is_better(const std::vector<Scores>& scores) const {
  if (scores.empty() || std::isnan(scores[0].val)) return false;
  return smaller_is_better_ ? !(scores[0].val >= best_[0].val) : !(scores[0].val <= best_[0].val);
}

/// "train 0.9  val 0.8  test 0.8", or with names of metrics "val auc 0.9 mrr 0.5".
void Log::print(const std::vector<Scores>& scores) const {
  for (const auto& [part, score] : parts_) {
    std::string text;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      char digits[32];
      std::snprintf(digits, sizeof digits, " %.4f", scores[i].*score);
      if (!std::isnan(scores[i].*score)) text += (metrics_[i] == "acc" ? "" : " " + metrics_[i]) + digits;
    }
    if (!text.empty()) std::printf("  %s%s", part.c_str(), text.c_str());
  }
}

void Log::summary(const GraphShardManager& graph) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto rss = comm_.all_reduce(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, ReduceOp::max);
  const auto graph_bytes = comm_.all_reduce(static_cast<std::uint64_t>(graph.index_bytes()), ReduceOp::max);
  if (speaks_) write_summary(graph_bytes, rss);
  comm_.agree([&] { require<InputError>(failure_.empty(), "the log is incomplete: ", failure_); });
}

void Log::write_summary(std::uint64_t graph_bytes, std::uint64_t rss) {
  const char* name = metrics_[0] == "acc" ? "accuracy" : metrics_[0].c_str();
  std::printf("%d epochs in %.1f s", epochs_, total_seconds_);
  if (best_epoch_ > 0)
    std::printf(", best validation %s %.4f in epoch %d with test %s %.4f", name, best_[0].val, best_epoch_,
                name, best_[0].test);
  std::printf("; per worker at most %.1f MB in tensors, %.1f MB resident\n", megabytes(largest_peak_),
              megabytes(rss));
  std::fflush(stdout);
  nlohmann::ordered_json line = {{"summary", true}, {"epochs", epochs_}, {"seconds", total_seconds_}};
  line["best_val_" + metrics_[0]] = number(best_[0].val);
  for (std::size_t i = 0; i < metrics_.size(); ++i) line["test_" + metrics_[i]] = number(best_[i].test);
  line.update({{"best_epoch", best_epoch_},
               {"peak_bytes", largest_peak_},
               {"graph_bytes", graph_bytes},
               {"max_rss_bytes", rss},
               {"ids_are_original", ids_are_original_},
               {"train_unlabelled", unlabelled_[0]},
               {"val_unlabelled", unlabelled_[1]},
               {"test_unlabelled", unlabelled_[2]}});
  write(line);
}

void Log::write(const nlohmann::ordered_json& line) {
  if (!file_) return;
  try {
    file_->add(line.dump() + "\n");
  } catch (const InputError& error) {
    failure_ = error.what();
    std::fprintf(stderr, "train: %s; the training continues without the log\n", error.what());
    file_.reset();
  }
}

}  // namespace sar::tools
