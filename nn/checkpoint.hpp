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
/// With GraphOptions::halo_error_feedback, the errors that a rank keeps are part of the state as well. They
/// belong to its halo: files beside the checkpoint have them, and they are taken again where every rank has
/// the nodes and the halo that it had.
///
/// Everything here is collective, with the same error on all ranks. Rank 0 alone touches the directory, but
/// for files of errors: these want a directory that all ranks see. It belongs to one run at a time: a
/// Checkpointer that has saved locks it (core/directory_lock.hpp) as long as it or a copy of it lives. Others
/// may read meanwhile.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/directory_lock.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/lr_scheduler.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/optimizer.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct CheckpointerOptions {
  int keep_last = 3;       ///< older checkpoints are deleted
  std::uint64_t seed = 0;  ///< of the run
  /// With GraphOptions::halo_error_feedback: the graphs on which the steps compute, in the same order in
  /// every run. Message flow graphs and the relations of a HeteroGraph are graphs of their own.
  std::vector<GraphShardManager> feedback_graphs = {};
};

/// What a checkpoint holds besides model and optimizer.
struct CheckpointInfo {
  int epoch = 0;
  std::map<std::string, std::string> extra;  ///< the program's own: best metrics, options
  /// Whether feedback_graphs have their errors again. Otherwise they begin with none: they are of another
  /// number of ranks or another partition, or the checkpoint has been made without them.
  bool has_halo_errors = false;
};

class Checkpointer {
 public:
  /// Makes the directory if need be, and removes the unfinished files of a run that was killed. Throws
  /// InputError when that fails, keep_last is less than 1, or a graph is on another number of ranks.
  Checkpointer(const Communicator& comm, std::string directory, const CheckpointerOptions& options = {});

  /// Locks the directory now and not with the first save(). Throws InputError when another run has locked it,
  /// and says which.
  void lock() const;

  /// Writes `checkpoint-<epoch>.safetensors`: under another name, flushed, renamed; then deletes those before
  /// the last `keep_last`. The errors of feedback_graphs are written before, to a directory of a new name,
  /// which the checkpoint says. Throws InputError when writing fails (the checkpoints that exist stay), for
  /// values that are not finite, when another run uses the directory, and when the directory has a checkpoint
  /// of a later epoch.
  void save(int epoch, const Module& model, Optimizer& optimizer,
            const std::map<std::string, std::string>& extra = {}) const;
  /// The same with the state of a schedule of the learning rate.
  void save(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler& schedule,
            const std::map<std::string, std::string>& extra = {}) const;

  /// The path of the checkpoint with the largest epoch; empty when there is none.
  [[nodiscard]] std::string latest() const;

  /// Puts model and optimizer (its learning rate, too) into the state of the checkpoint, whose precision may
  /// be another one, and the feedback_graphs. On an error they are as they were. Throws InputError for a
  /// damaged file, naming the complete ones in its directory, for damaged or missing errors, and for a
  /// checkpoint of another model, optimizer or seed.
  CheckpointInfo load(const std::string& path, Module& model, Optimizer& optimizer) const;
  /// The same, and the schedule. Throws InputError, too, when the checkpoint has another schedule or none.
  CheckpointInfo load(const std::string& path, Module& model, Optimizer& optimizer,
                      LRScheduler& schedule) const;

 private:
  void write(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule,
             const std::map<std::string, std::string>& extra) const;
  CheckpointInfo read(const std::string& path, Module& model, Optimizer& optimizer,
                      LRScheduler* schedule) const;

  /// The name of their new directory; empty for no graphs.
  [[nodiscard]] std::string write_errors(int epoch) const;

  Communicator comm_;
  std::string directory_;
  CheckpointerOptions options_;
  std::string halos_;           // of the feedback_graphs
  mutable DirectoryLock lock_;  // on rank 0
};

}  // namespace sar
