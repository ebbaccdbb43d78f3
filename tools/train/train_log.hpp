/// Measurements and output of `train`: one printed line and, in the log, one JSON object per epoch.
#pragma once

#include "train_graph.hpp"
#include "train_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/nn/train/checkpoint.hpp>

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// One metric on the training, validation and test split; NaN if not evaluated or if the split is empty.
struct Scores {
  double train = std::numeric_limits<double>::quiet_NaN(), val = train, test = train;
};

struct Epoch {
  int epoch = 0;
  double loss = 0, lr = 0;
  std::vector<Scores> scores = {};  ///< in the order of metric_names(); empty: not evaluated
  double seconds = 0, forward_seconds = 0, backward_seconds = 0,
         comm_seconds = 0;       ///< maximum over the ranks
  std::uint64_t comm_bytes = 0;  ///< sent by all ranks together
  std::uint64_t peak_bytes = 0;  ///< accounted bytes, maximum over the ranks
  // of mini-batches; 0 full batch
  Index batches = 0, seeds = 0;  ///< of this epoch, in this run
  double seeds_per_second = 0;   ///< including sampling
};

/// Measures one epoch on this rank; finish() is collective.
class EpochTimer {
 public:
  explicit EpochTimer(const Communicator& comm);
  void step_begins() {
    mark_ = elapsed();
  }  ///< called after sampling; without sampling the step begins with the epoch
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

/// Prints and writes on rank 0. All members are collective.
class Log {
 public:
  /// A run resumed from `start` continues its log: lines of later epochs are deleted.
  Log(const Communicator& comm, const TrainOptions& o, const CheckpointInfo& start,
      const std::string& checkpoint);

  /// Returns the state that a checkpoint stores, to continue the log of a resumed run.
  [[nodiscard]] std::map<std::string, std::string> progress() const;

  /// Reports the start. `model`: its describe().
  void start(const TrainingGraph& loaded, const TrainOptions& o, const std::string& model);
  void epoch(const Epoch& e);
  /// Throws InputError if part of the log could not be written; the training has continued without it.
  void summary(const GraphShardManager& graph);

 private:
  void restore(const std::map<std::string, std::string>& extra, const std::string& checkpoint);
  [[nodiscard]] bool is_better(const std::vector<Scores>& scores) const;
  void print(const std::vector<Scores>& scores) const;
  void write(const nlohmann::ordered_json& line);
  void write_summary(std::uint64_t graph_bytes, std::uint64_t rss);

  const Communicator& comm_;
  bool speaks_;
  int epochs_;
  HaloFormat halo_format_;
  std::optional<LineFile> file_;
  std::string failure_;  // of the file
  double total_seconds_ = 0;
  std::uint64_t largest_peak_ = 0;
  std::vector<std::string> metrics_;
  bool smaller_is_better_;
  std::vector<std::pair<std::string, double Scores::*>> parts_;  // that are evaluated
  std::vector<Scores> best_;                                     // of the metrics
  int best_epoch_ = 0;
  bool ids_are_original_ = true;
  std::array<Index, 3> unlabelled_ = {};  // in the order of Scores
};

}  // namespace sar::tools
