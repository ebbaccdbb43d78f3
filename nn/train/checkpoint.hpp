// SPDX-License-Identifier: MIT

/// Checkpoints: the whole state of a training in one file, from which a run that was killed continues.
///
///     Checkpointer checkpoints(comm, "run1", {.seed = seed});
///     int epoch = 0;
///     if (const std::string last = checkpoints.latest(); !last.empty())
///       epoch = checkpoints.load(last, model, optimizer).epoch;
///     while (++epoch <= epochs) {
///       ...
///       if (epoch % 20 == 0) checkpoints.save(epoch, model, optimizer);
///     }
///
/// Model and optimizer are the same on every rank, and all random draws follow from the seed and the model's
/// counters. A checkpoint therefore depends neither on the number of ranks nor on the partition of the graph:
/// a run that continues on other ranks gives the same curve to rounding. (Batch norm with `local` has
/// statistics of each rank's own; the checkpoint keeps those of rank 0.)
///
/// All functions are collective and throw the same error on all ranks. Only rank 0 accesses the directory.
/// A file that is written beside the training fails in the next call. One run at
/// a time can save in the directory: the first save() locks the directory (core/files/file.hpp)
/// until the last copy of the Checkpointer is destroyed. Other runs can read it at any time.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/file.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/train/lr_scheduler.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

struct CheckpointerOptions {
  int keep_last = 3;       ///< older checkpoints are deleted
  std::uint64_t seed = 0;  ///< of the run
  /// save() returns when rank 0 has copied the state; a thread writes the copy while the training goes on.
  bool beside = false;
};

/// Local. Returns the files of a directory that are checkpoints of a series, by their epochs. Throws
/// InputError if it is no directory.
[[nodiscard]] std::map<int, std::string> checkpoints_in(const std::string& directory);

/// The numbers and texts that a checkpoint holds besides model and optimizer.
struct CheckpointInfo {
  int epoch = 0;
  std::map<std::string, std::string> extra;  ///< the program's own: best metrics, options
};

/// @code
/// Linear net(64, 4, gen);
/// Adam optimizer(net.named_parameters());
/// const Checkpointer checkpoints(comm, "run1");
/// checkpoints.save(/*epoch=*/1, net, optimizer);
/// const int done = checkpoints.load(checkpoints.latest(), net, optimizer).epoch;  // in the next run
/// @endcode
class Checkpointer {
 public:
  /// Makes the directory if need be, and removes the unfinished files of a run that was killed. Throws
  /// InputError when that fails or keep_last is less than 1.
  Checkpointer(const Communicator& comm, std::string directory, const CheckpointerOptions& options = {});

  [[nodiscard]] std::uint64_t seed() const noexcept { return options_.seed; }

  /// Locks the directory now and not with the first save(). Throws InputError when another run has locked it,
  /// and says which.
  void lock() const;

  /// Local. Adds state that save() writes and load() restores, too, under names that begin with `whose`,
  /// such as the weights of the best epoch: add_state("best.", best.weights()). Its owner must outlive
  /// this.
  void add_state(const std::string& whose, const StateDict& state);

  /// Writes `checkpoint-<epoch>.safetensors` under a temporary name, flushes and renames it, and deletes all
  /// but the last `keep_last` checkpoints. Throws InputError if writing fails (existing checkpoints remain),
  /// if a value is not finite, if another run uses the directory, or if it contains a checkpoint of a later
  /// epoch.
  void save(int epoch, const Module& model, Optimizer& optimizer,
            const std::map<std::string, std::string>& extra = {}) const {
    write(epoch, model, optimizer, nullptr, extra);
  }
  /// The same with the state of a schedule of the learning rate.
  void save(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler& schedule,
            const std::map<std::string, std::string>& extra = {}) const {
    write(epoch, model, optimizer, &schedule, extra);
  }

  /// Waits until the checkpoint of the last save() is written. Throws InputError if writing failed. Without
  /// `beside` there is nothing to wait for. The end of the last copy of a Checkpointer waits, too, but is
  /// silent.
  void wait() const;

  /// The path of the checkpoint with the largest epoch, after wait(); empty when there is none.
  [[nodiscard]] std::string latest() const;

  /// Returns what a checkpoint says of itself, without its tensors. Throws InputError as load().
  [[nodiscard]] CheckpointInfo info(const std::string& path, const Optimizer& optimizer) const;

  /// Restores model and optimizer, including the learning rate, from a checkpoint of either precision. If it
  /// fails, they are unchanged. Throws InputError for a damaged file (the message lists the complete ones in
  /// the directory) and for a checkpoint of another model, optimizer or seed.
  CheckpointInfo load(const std::string& path, Module& model, Optimizer& optimizer) const {
    return read(path, model, optimizer, nullptr);
  }
  /// The same, and the state of the schedule, which then sets the rate that its options have for the epoch.
  /// Throws InputError, too, when the checkpoint has another schedule or none.
  CheckpointInfo load(const std::string& path, Module& model, Optimizer& optimizer,
                      LRScheduler& schedule) const {
    return read(path, model, optimizer, &schedule);
  }

 private:
  void write(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule,
             const std::map<std::string, std::string>& extra) const;
  CheckpointInfo read(const std::string& path, Module& model, Optimizer& optimizer,
                      LRScheduler* schedule) const;

  void finish() const;
  [[nodiscard]] StateDict whole_state(const Module& model, Optimizer& optimizer) const;

  Communicator comm_;
  std::string directory_;
  CheckpointerOptions options_;
  StateDict added_;
  mutable DirectoryLock lock_;                  // on rank 0
  std::shared_ptr<std::future<void>> writing_;  // on rank 0: the file that is written beside the training
};

}}  // namespace sar
