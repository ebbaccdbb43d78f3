/// Checkpoints of `train`: which run wrote them, and where a resumed run continues.
#pragma once

#include "train_input.hpp"
#include "train_options.hpp"
#include "train_steps.hpp"

#include <sar/nn/train/checkpoint.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

class Checkpoints {
 public:
  /// `input` outlives this. Throws InputError when there are checkpoints already and the run shall not resume
  /// from them.
  Checkpoints(const Communicator& comm, const TrainOptions& o, const GraphShardManager& graph,
              NodeInput& input);

  /// The state after the last checkpoint; epoch 0 when there is none. Another learning rate is taken, and
  /// said. Throws InputError for a checkpoint of a run with other options, or longer than this run shall be.
  /// `schedule` may be null.
  CheckpointInfo resume(Module& model, Optimizer& optimizer, LRScheduler* schedule);

  /// The file that the state comes from; empty for none.
  [[nodiscard]] const std::string& resumed_from() const noexcept { return last_; }

  /// Saves within the epoch, after every so many batches, in the place of the last checkpoint.
  void batch_done(int epoch, const EpochProgress& now, const Module& model, Optimizer& optimizer,
                  const LRScheduler* schedule, std::map<std::string, std::string> progress) const;
  /// Saves after every so many epochs and after the last. `progress`: see Log.
  void epoch_done(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule,
                  std::map<std::string, std::string> progress) const;

 private:
  void save(int epoch, Index batch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule,
            std::map<std::string, std::string> progress) const;
  void remove_embeddings(int epoch, const std::string& but) const;

  const Communicator& comm_;
  NodeInput& input_;
  std::string directory_;

  std::optional<Checkpointer> checkpointer_;
  int every_, epochs_;
  Index every_batches_;
  bool speaks_;
  double lr_;
  std::map<std::string, std::string> run_, defaults_;
  std::string last_;
};

}  // namespace sar::tools
