// SPDX-License-Identifier: MIT

/// The steps of an epoch, one for each batch. Optimizers and schedules.
///
/// Room tools/train: The data, models, batches and steps of the tasks of `train`, its log and checkpoints.
#pragma once

#include "options/train_options.hpp"
#include "train_batches.hpp"
#include "train_graph.hpp"
#include "train_input.hpp"
#include "train_log.hpp"
#include "train_predict.hpp"

#include <sar/config.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

/// The position within an unfinished epoch.
struct EpochProgress {
  Index batch = 0;      ///< steps done
  Index seeds = 0;      ///< seeds of these steps
  double loss_sum = 0;  ///< sum of the losses of these seeds, or of batches that estimate the whole loss
  bool of_batches = false;  ///< the latter

  [[nodiscard]] double mean_loss() const {
    return loss_sum / static_cast<double>(std::max<Index>(of_batches ? batch : seeds, 1));
  }

  [[nodiscard]] std::map<std::string, std::string> to_checkpoint() const;
  /// Reads the position from `extra` of a checkpoint; without entries, the start of the epoch. Throws
  /// InputError that names `place`.
  static EpochProgress from_checkpoint(const std::map<std::string, std::string>& extra,
                                       const std::string& place);
};

/// Trains, evaluates and predicts with a model for one task on one graph, which must outlive this.
class Steps : NonCopyable {
 public:
  virtual ~Steps() = default;

  [[nodiscard]] virtual Module& model() = 0;
  /// A summary of the model, for messages.
  [[nodiscard]] virtual std::string description() const = 0;
  /// Factors of the learning rate, as of AdamOptions.
  [[nodiscard]] virtual std::map<std::string, double> lr_factors() const { return o_.lr_factors; }
  /// Collective. Trains to the end of the epoch. Calls `step_done` with the position after each step. Sets
  /// loss and seeds of `result`. Throws Error if the loss is not finite.
  void epoch(Optimizer& optimizer, Epoch& result, EpochTimer& timer, EpochProgress from,
             FunctionRef<void(const EpochProgress&, Index num_batches)> step_done);
  /// Updates these averages after each step of the optimizer. They must outlive this.
  void keep_average(WeightAverage* average) noexcept { average_ = average; }
  /// Collective. Returns the scores in the order of metric_names().
  [[nodiscard]] std::vector<Scores> evaluate() {
    model().eval();
    return scores();
  }
  /// Collective. Called after the last epoch, with the weights that are kept, before they are saved.
  virtual void finish() {}
  /// Collective. Writes the files of --predict.
  virtual void predict() {
    if (o_.predict.empty()) return;
    model().eval();
    with_other_files_told(comm_, o_, [&] { write_predictions(); });
  }
  /// What predict() has found of groups of the data, for the log; null: nothing.
  [[nodiscard]] virtual nlohmann::ordered_json report() const { return {}; }

 protected:
  /// `g` must outlive this.
  Steps(TrainingGraph& g, const TrainOptions& o)
      : g_(g), graph_(g.graph), comm_(g.graph.comm()), data_(g.data), input_(*g.input), o_(o) {}
  /// Sets what the epochs train on.
  void train_on(std::unique_ptr<BatchSource> batches) { batches_ = std::move(batches); }

  /// Collective. Both of a model that evaluates.
  [[nodiscard]] virtual std::vector<Scores> scores() = 0;
  virtual void write_predictions() {}

  /// Collective. Computes the loss on the batch, for add_gradients().
  [[nodiscard]] virtual Variable loss(const Batch&) { return {}; }
  /// Collective. Adds the gradients of the loss to those of the parameters, on this rank. Returns the loss.
  [[nodiscard]] virtual double add_gradients(const Batch& batch, EpochTimer& timer);
  /// Collective. Returns whether the batch counts: a row of the loss on this rank has a weight above 0. A
  /// batch that counts on no rank is skipped, as one without seeds.
  [[nodiscard]] virtual bool counts(const Batch&) const { return true; }

  /// The epoch that is trained, from 1 on.
  [[nodiscard]] int current_epoch() const noexcept { return epoch_; }
  /// Collective. Applies a network to the batch: its message flow graphs, or the whole graph.
  [[nodiscard]] Variable apply(LayerStack& network, const Batch& batch) const;
  /// Returns whether the network keeps what the first layer aggregates: the graph and the features are the
  /// same in each step, and the features are not multiplied first.
  [[nodiscard]] bool keeps_first_sums() const;

  TrainingGraph& g_;
  const Graph& graph_;
  const Communicator& comm_;
  const NodeData& data_;
  NodeInput& input_;
  const TrainOptions& o_;

 private:
  [[nodiscard]] Index count(const Batch& batch, Epoch& result) const;
  double step(const Batch& batch, Optimizer& optimizer, EpochTimer& timer);

  std::unique_ptr<BatchSource> batches_;
  WeightAverage* average_ = nullptr;
  int epoch_ = 0;
};

/// Collective. Steps of predicting labels of nodes, or of graphs. `g` must outlive them.
std::unique_ptr<Steps> make_node_steps(TrainingGraph& g, const TrainOptions& o);
std::unique_ptr<Steps> make_sample_steps(TrainingGraph& g, const TrainOptions& o);
/// Collective. Steps of training for links, or for labels of edges. `g` must outlive them.
std::unique_ptr<Steps> make_edge_steps(TrainingGraph& g, const TrainOptions& o);

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& o, Steps& steps);

/// Returns the schedule; null if the learning rate is constant.
std::unique_ptr<LRScheduler> make_schedule(const TrainOptions& o, Optimizer& optimizer);

}  // namespace sar::tools
