// SPDX-License-Identifier: MIT

/// What a run has reached: its epochs, the scores of the best epoch and of the last.
#pragma once

#include "options/train_options.hpp"

#include <sar/nn/train/weight_average.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// One metric on the training, validation and test split, and on data that is watched; NaN if not evaluated
/// or if the split is empty.
struct Scores {
  double train = std::numeric_limits<double>::quiet_NaN(), val = train, test = train, watch = train;
};

/// The splits that a task evaluates: the name in logs, and its place in Scores.
using SplitScores = std::vector<std::pair<std::string, double Scores::*>>;
SplitScores evaluated_splits(const TaskOptions& o);

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
  Index input_rows = 0;          ///< that these batches have read, of all ranks
  Index halo_rows = 0;           ///< of these, what ranks have fetched from others for the first layer
  double seeds_per_second = 0;   ///< including sampling
};

/// A run until now, or as it ended. Scores are in the order of metric_names().
struct RunResult {
  int epochs = 0;                ///< done
  int best_epoch = 0;            ///< 0: no validation value yet
  std::vector<Scores> best;      ///< of the best epoch
  std::vector<Scores> last;      ///< of the last evaluation
  double seconds = 0;            ///< of all epochs
  std::uint64_t peak_bytes = 0;  ///< maximum over the epochs
};

/// Follows the scores of a run. All functions are local; scores are the same on all ranks.
class Progress {
 public:
  /// With --keep best, keeps a copy of the weights of the best epoch. The model must outlive this.
  Progress(const TrainOptions& o, const Module& model);

  /// Continues at a checkpoint, whose own texts are `extra`. Throws InputError that names `place`.
  void resume(int epoch, const std::map<std::string, std::string>& extra, const std::string& place);
  /// Returns the texts that a checkpoint stores for resume().
  [[nodiscard]] std::map<std::string, std::string> to_checkpoint() const;
  /// The weights of the best epoch, which a checkpoint stores, too.
  [[nodiscard]] StateDict best_weights() { return best_.weights(); }

  /// Throws InputError if a validation value is needed, to keep the best weights, to stop or to compare runs,
  /// and is not defined.
  void add(const Epoch& epoch);
  /// Whether the run ends here, by --stop-after or --epochs.
  [[nodiscard]] bool is_done() const;
  /// With --keep best, gives the model the weights of the best epoch.
  void restore_best_weights() { best_.restore_weights(); }

  [[nodiscard]] const RunResult& result() const noexcept { return result_; }

 private:
  const TrainOptions& o_;
  std::vector<std::string> metrics_;
  SplitScores splits_;
  BestEpoch best_;
  RunResult result_;
};

/// JSON has no NaN: null.
nlohmann::ordered_json json_number(double x);
/// Returns the number that a JSON value has by this name; NaN: there is none.
template <class Json>
double number_in(const Json& json, const std::string& name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->template get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

/// Whether this epoch is evaluated: every --eval-every epochs, and the last.
[[nodiscard]] bool is_evaluated(const TrainOptions& o, int epoch);

}  // namespace sar::tools
