// SPDX-License-Identifier: MIT

/// The steps of an epoch: one step on the whole graph, or one step per mini-batch. Optimizers and schedules.
#pragma once

#include "options/train_options.hpp"
#include "train_input.hpp"
#include "train_log.hpp"

#include <sar/config.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

/// Message flow graphs, and the relations of their edges.
struct BlockData {
  std::vector<MessageFlowGraph> blocks;
  std::vector<GraphRelations> relations;

  /// Collective. `of_graph`: relations of the whole graph.
  BlockData(std::vector<MessageFlowGraph> graphs, std::span<const GraphRelations> of_graph);
};

/// Collective. Makes the sampler of --sample. For a typed graph, `relations` has the types of its edges,
/// named `edge_types`. Throws InputError for fan-outs of an unknown type.
NeighborSampler make_sampler(const Graph& graph, std::span<const GraphRelations> relations,
                             std::span<const EdgeType> edge_types, const TrainOptions& o, std::uint64_t seed);

/// Collective. Throws InputError if the seeds (named in the message, such as "training nodes") make no
/// batch.
void require_batches(const Communicator& comm, const TrainOptions& o, Index num_batches, Index seeds_of_rank,
                     const char* seeds);

/// Collective. Returns the loss of --loss on the rows of a mask. `labels` are classes, or `targets` in their
/// place; `class_weights` may be empty. With `row_weights` the loss is a sum.
Variable loss_of_labels(const Communicator& comm, const TaskOptions& o, std::span<const double> class_weights,
                        const Variable& scores, std::span<const std::int64_t> labels, const Tensor& targets,
                        std::span<const std::uint8_t> mask, const RowWeights& row_weights = std::nullopt);

/// The position within an unfinished epoch.
struct EpochProgress {
  Index batch = 0;      ///< steps done
  Index seeds = 0;      ///< seeds of these steps
  double loss_sum = 0;  ///< sum of the losses of these seeds, or of batches that estimate the whole loss

  [[nodiscard]] double mean_loss(bool of_batches) const {
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
  /// Collective. Trains to the end of the epoch. Calls `step_done` with the position after each step. Sets
  /// loss and seeds of `result`. Throws Error if the loss is not finite.
  void epoch(Optimizer& optimizer, Epoch& result, EpochTimer& timer, EpochProgress from,
             FunctionRef<void(const EpochProgress&, Index num_batches)> step_done);
  /// Updates these averages after each step of the optimizer. They must outlive this.
  void keep_average(WeightAverage* average) noexcept { average_ = average; }
  /// Collective. Returns the scores in the order of metric_names().
  [[nodiscard]] virtual std::vector<Scores> evaluate() = 0;
  /// Collective. Writes the files of --predict.
  virtual void predict() = 0;

 protected:
  /// `input` must outlive this, too.
  Steps(const Graph& graph, const NodeData& data, NodeInput& input, std::span<const GraphRelations> relations,
        const TrainOptions& o)
      : graph_(graph), comm_(graph.comm()), data_(data), input_(input), relations_(relations), o_(o) {}

  [[nodiscard]] virtual Index num_batches() const = 0;  ///< 0: one step on the whole graph
  [[nodiscard]] virtual Index num_seeds() const = 0;    ///< seeds of all batches
  virtual void start_epoch(std::uint64_t epoch, Index first_batch) = 0;
  /// Collective. Samples the next batch and sets counts_; returns the number of this rank's seeds, or
  /// nothing after the last batch.
  [[nodiscard]] virtual std::optional<Index> next_batch() = 0;
  /// Collective. Computes the loss on the batch, or on the whole graph, for add_gradients().
  [[nodiscard]] virtual Variable loss() { return {}; }
  /// Collective. Adds the gradients of the loss to those of the parameters, on this rank. Returns the loss.
  [[nodiscard]] virtual double add_gradients(EpochTimer& timer);

  /// Collective. Returns the input rows of the sources of blocks.
  [[nodiscard]] Variable input_of(const BlockData& part) const {
    return input_.of(part.blocks.front().src_rows());
  }

  /// Collective. Returns the scores of predicted labels of nodes or graphs, a row for each of this rank.
  [[nodiscard]] std::vector<Scores> scores_of_labels(const Tensor& predicted) const;

  const Graph& graph_;
  const Communicator& comm_;
  const NodeData& data_;
  NodeInput& input_;
  std::span<const GraphRelations> relations_;
  const TrainOptions& o_;
  /// Sets the two numbers from the first block.
  void count_rows(const MessageFlowGraph& block);
  /// Whether the batch counts: a row of the loss on this rank has a weight above 0. A batch that counts on no
  /// rank is skipped, as one without seeds.
  bool counts_ = true;
  Index batch_rows_ = 0;       ///< rows of the input that the batch reads, of all ranks; set by next_batch()
  Index batch_halo_rows_ = 0;  ///< rows that this rank fetches from others for the first layer

 private:
  double step(Optimizer& optimizer, EpochTimer& timer);

  WeightAverage* average_ = nullptr;
};

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& o, const Module& model);

/// Returns the schedule; null if the learning rate is constant.
std::unique_ptr<LRScheduler> make_schedule(const TrainOptions& o, Optimizer& optimizer);

}  // namespace sar::tools
