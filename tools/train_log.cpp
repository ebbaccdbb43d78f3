#include "train_log.hpp"

#include <sar/sar.hpp>

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

/// The lines of a log up to an epoch, whole ones.
std::string lines_until(const std::string& file, int epoch) {
  std::string kept;
  std::istringstream in(read_text(file, "the log of the run that goes on", Index{1} << 40));
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

Log::Log(const Communicator& comm, const std::string& file, int epochs, const CheckpointInfo& start,
         const std::string& checkpoint)
    : comm_(comm), speaks_(comm.rank() == 0), epochs_(epochs) {
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
  const nlohmann::json progress{{"train_acc", number(best_.train)}, {"val_acc", number(best_.val)},
                                {"test_acc", number(best_.test)},   {"epoch", best_epoch_},
                                {"seconds", total_seconds_},        {"peak_bytes", largest_peak_}};
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
  const double none = Accuracies().val;
  best_ = {value("train_acc", 0, none), value("val_acc", 0, none), value("test_acc", 0, none)};
  best_epoch_ = static_cast<int>(std::min<double>(value("epoch", 0, 0), std::numeric_limits<int>::max()));
  total_seconds_ = value("seconds", 0, 0);
  largest_peak_ = static_cast<std::uint64_t>(value("peak_bytes", 0, 0));
}

void Log::start(const NodeData& data, const GraphShardManager& graph, const TrainOptions& o) {
  ids_are_original_ = data.ids_are_original;
  const auto most_nodes = comm_.all_reduce(graph.num_nodes(), ReduceOp::max);
  const auto most_edges = comm_.all_reduce(graph.num_edges(), ReduceOp::max);
  if (!speaks_) return;
  std::printf(
      "%s: %lld nodes, %lld edges%s, %lld features, %lld classes; %d ranks x %d threads, instruction set %s, "
      "matmul precision %s, %s partition, at most %lld nodes and %lld edges a rank\n",
      printable(data.name).c_str(), integer(graph.num_global_nodes()), integer(graph.num_global_edges()),
      graph.edge_weight().defined() ? " with weights" : "", integer(data.features.row_size()),
      integer(data.num_classes), comm_.size(), num_threads(), to_string(instruction_set()),
      to_string(o.matmul_precision), o.found.is_partitioned() ? "given" : to_string(o.data.partition),
      integer(most_nodes), integer(most_edges));
  std::printf("%s\n", describe(o.model, data.features.row_size(), data.num_classes).c_str());
  std::fflush(stdout);
}

void Log::epoch(const Epoch& e) {
  total_seconds_ += e.seconds;
  largest_peak_ = std::max(largest_peak_, e.peak_bytes);
  if (!std::isnan(e.accuracy.val) && !(e.accuracy.val <= best_.val))
    best_ = e.accuracy, best_epoch_ = e.epoch;
  if (!speaks_) return;
  std::printf("epoch %4d/%d  loss %.6f", e.epoch, epochs_, e.loss);
  for (const auto& [name, accuracy] : {std::pair("train", e.accuracy.train), std::pair("val", e.accuracy.val),
                                       std::pair("test", e.accuracy.test)})
    if (!std::isnan(accuracy)) std::printf("  %s %.4f", name, accuracy);
  if (e.seeds > 0) std::printf("  %lld batches, %.0f seeds/s", integer(e.batches), e.seeds_per_second);
  std::printf("  %.3f s  peak %.1f MB  %.0f s left\n", e.seconds, megabytes(e.peak_bytes),
              total_seconds_ / e.epoch * (epochs_ - e.epoch));
  std::fflush(stdout);
  nlohmann::ordered_json line = {{"epoch", e.epoch},
                                 {"loss", e.loss},
                                 {"lr", e.lr},
                                 {"train_acc", number(e.accuracy.train)},
                                 {"val_acc", number(e.accuracy.val)},
                                 {"test_acc", number(e.accuracy.test)},
                                 {"seconds", e.seconds},
                                 {"forward_seconds", e.forward_seconds},
                                 {"backward_seconds", e.backward_seconds},
                                 {"comm_seconds", e.comm_seconds},
                                 {"comm_bytes", e.comm_bytes},
                                 {"peak_bytes", e.peak_bytes},
                                 {"instruction_set", to_string(instruction_set())}};
  if (e.seeds > 0) {
    line["batches"] = e.batches;
    line["seeds_per_second"] = e.seeds_per_second;
  }
  write(line);
}

void Log::summary(const GraphShardManager& graph) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto rss = comm_.all_reduce(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, ReduceOp::max);
  const auto graph_bytes = comm_.all_reduce(static_cast<std::uint64_t>(graph.index_bytes()), ReduceOp::max);
  if (speaks_) write_summary(graph_bytes, rss);
  comm_.agree([&] { require<InputError>(failure_.empty(), "the log is not complete: ", failure_); });
}

void Log::write_summary(std::uint64_t graph_bytes, std::uint64_t rss) {
  std::printf("%d epochs in %.1f s", epochs_, total_seconds_);
  if (best_epoch_ > 0)
    std::printf(", best validation accuracy %.4f in epoch %d with test accuracy %.4f", best_.val, best_epoch_,
                best_.test);
  std::printf("; per worker at most %.1f MB in tensors, %.1f MB resident\n", megabytes(largest_peak_),
              megabytes(rss));
  std::fflush(stdout);
  write({{"summary", true},
         {"epochs", epochs_},
         {"seconds", total_seconds_},
         {"best_val_acc", number(best_.val)},
         {"test_acc", number(best_.test)},
         {"best_epoch", best_epoch_},
         {"peak_bytes", largest_peak_},
         {"graph_bytes", graph_bytes},
         {"max_rss_bytes", rss},
         {"ids_are_original", ids_are_original_}});
}

void Log::write(const nlohmann::ordered_json& line) {
  if (!file_) return;
  try {
    file_->add(line.dump() + "\n");
  } catch (const InputError& error) {
    failure_ = error.what();
    std::fprintf(stderr, "train: %s; the training goes on without its log\n", error.what());
    file_.reset();
  }
}

}  // namespace sar::tools
