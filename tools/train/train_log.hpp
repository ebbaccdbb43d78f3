// SPDX-License-Identifier: MIT

/// Measurements and output of `train`: one printed line and, in the log, one JSON object per epoch.
#pragma once

#include "options/train_options.hpp"
#include "train_curves.hpp"
#include "train_graph.hpp"
#include "train_progress.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/nn/train/checkpoint.hpp>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// Measures one epoch on this rank; finish() is collective.
class EpochTimer {
 public:
  explicit EpochTimer(const Communicator& comm);
  void step_begins() { mark_ = elapsed(); }  ///< called when the step has its batch
  void forward_done() { lap(forward_); }
  void backward_done() { lap(backward_); }
  void steps_done() { steps_ = elapsed(); }
  void finish(Epoch& epoch) const;

 private:
  [[nodiscard]] double elapsed() const;
  void lap(double& sum) { sum += elapsed() - std::exchange(mark_, elapsed()); }

  const Communicator& comm_;
  CommStats before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double mark_ = 0, forward_ = 0, backward_ = 0, steps_ = 0;
};

/// Prints and writes what a run does, on rank 0. Of several runs it prints only how each ends. All members
/// are collective.
class Log {
 public:
  /// A run resumed after `epoch` epochs continues its log: lines of later epochs are deleted. A run that is
  /// not the first one adds its lines to those of the others.
  Log(const Communicator& comm, const TrainOptions& o, int epoch, bool resumed);

  /// Reports the start. `model`: its describe().
  void start(const TrainingGraph& loaded, const TrainOptions& o, const std::string& model);
  /// Reports the scores of the weights that a training begins with.
  void before(const std::vector<Scores>& scores);
  void epoch(const Epoch& e, const RunResult& result);
  /// `groups`: Steps::report(). Also draws the picture of --curves. Throws InputError if it, or part of the
  /// log or of the file of
  /// --tensorboard, could not be written; the training has continued without them.
  void summary(const TrainingGraph& loaded, const RunResult& result, const nlohmann::ordered_json& groups);

 private:
  void print(const std::vector<Scores>& scores) const;
  void add_scores(nlohmann::ordered_json& line, const std::vector<Scores>& scores) const;
  void print_summary(const RunResult& result, std::uint64_t rss) const;
  void write(const nlohmann::ordered_json& line);
  void fail(const std::string& message, const char* without);

  const Communicator& comm_;
  const TrainOptions& o_;
  bool speaks_;
  std::optional<LineFile> file_;
  std::optional<Curves> curves_;  // --curves, --tensorboard
  std::string failure_;           // of a file
  std::vector<std::string> metrics_;
  SplitScores splits_;
};

/// "best validation accuracy 0.8120 in epoch 57 with test accuracy 0.8230"; empty without a best epoch.
std::string describe_best(const TrainOptions& o, const RunResult& result);

/// Collective. Adds a line to the log of all runs, on rank 0. Throws InputError, the same on every rank, if
/// it cannot be written.
void write_last_line(const Communicator& comm, const std::string& file, const nlohmann::ordered_json& line);

}  // namespace sar::tools
