// SPDX-License-Identifier: MIT

/// Checkpoints of `train`: what the training is (its options, network and data), and the position where a
/// resumed run continues.
#pragma once

#include "options/train_options.hpp"
#include "train_graph.hpp"
#include "train_progress.hpp"
#include "train_steps.hpp"

#include <sar/nn/train/checkpoint.hpp>

#include <map>
#include <optional>
#include <string>

namespace sar::tools {

/// Key of the description of the network among what a checkpoint has from `train` (CheckpointInfo::extra).
constexpr const char* network_key = "network";

class Checkpoints {
 public:
  /// `o`, `loaded`, `progress` and `average`, which may be null, must outlive this. Throws InputError if
  /// checkpoints exist and the run does not resume from them.
  Checkpoints(const TrainOptions& o, const TrainingGraph& loaded, Progress& progress, WeightAverage* average);

  /// Loads the last checkpoint and returns its state; epoch 0 if there is none. The progress continues, and a
  /// changed learning rate is used and reported. Throws InputError for a checkpoint of a run with other
  /// options, another network or other data, or with more epochs than this run. `schedule` may be null.
  CheckpointInfo resume(Module& model, Optimizer& optimizer, LRScheduler* schedule);

  /// The file that the state was loaded from; empty: none.
  [[nodiscard]] const std::string& resumed_from() const noexcept { return last_; }

  /// Saves within the epoch, every checkpoint_batches batches; replaces the last checkpoint.
  void batch_done(int epoch, const EpochProgress& now, const Module& model, Optimizer& optimizer,
                  const LRScheduler* schedule) const;
  /// Saves every checkpoint_every epochs and where the run ends.
  void epoch_done(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule) const;

 private:
  [[nodiscard]] const std::string& extra_of(const CheckpointInfo& info, const std::string& key) const;
  void require_same(const std::string& option, const CheckpointInfo& info) const;
  void save(int epoch, Index batch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule,
            std::map<std::string, std::string> extra) const;
  void remove_embeddings(int epoch, const std::string& but) const;

  const Communicator& comm_;
  NodeInput& input_;
  Progress& progress_;
  const TrainOptions& o_;

  std::optional<Checkpointer> checkpointer_;
  bool speaks_;
  std::map<std::string, std::string> run_;
  std::string last_;
};

/// Collective. Returns `path` if it is a checkpoint, the latest one if it is a directory, and nothing for
/// other files of weights. Throws InputError for a directory without a checkpoint.
std::string find_checkpoint(const Communicator& comm, const std::string& path);

/// Collective. Loads the model of a checkpoint: parameters and buffers. Throws InputError, the same on
/// every rank, for the checkpoint of another model.
void load_model_of_checkpoint(const Communicator& comm, const std::string& path, Module& model);

}  // namespace sar::tools
