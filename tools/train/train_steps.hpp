/// The steps of an epoch of `train`: one on the whole graph, or one for each mini-batch.
#pragma once

#include "train_input.hpp"
#include "train_log.hpp"
#include "train_models.hpp"
#include "train_options.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

/// Message flow graphs, and the relations of their edges.
struct BlockData {
  std::vector<MessageFlowGraph> blocks;
  std::vector<Relations> relations;

  /// `of_graph`: relations of the whole graph. Collective.
  BlockData(std::vector<MessageFlowGraph> graphs, std::span<const Relations> of_graph);
};

/// The neighbours that --sample asks for. In a graph of many types, `relations` has the types of its edges,
/// which are `edge_types`. Throws InputError for fan-outs of a type that is not there. Collective.
NeighborSampler make_sampler(const GraphShardManager& graph, std::span<const Relations> relations,
                             std::span<const EdgeType> edge_types, const TrainOptions& o,
                             std::uint64_t seed);

/// Throws InputError when there is no batch for the seeds ("training nodes"). Collective.
void require_batches(const Communicator& comm, const TrainOptions& o, Index num_batches, Index seeds_of_rank,
                     const char* seeds);

/// Where an epoch stands that is not over.
struct EpochProgress {
  Index batch = 0;      ///< steps done
  Index seeds = 0;      ///< of these steps
  double loss_sum = 0;  ///< of all these seeds

  [[nodiscard]] std::map<std::string, std::string> to_checkpoint() const;
  /// What `extra` of a checkpoint says; none of it: the epoch is to begin. Throws InputError naming `place`.
  static EpochProgress from_checkpoint(const std::map<std::string, std::string>& extra,
                                       const std::string& place);
};

/// A model for one task on one graph, which outlives this: its steps, its scores, its predictions.
class Steps {
 public:
  virtual ~Steps() = default;
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  [[nodiscard]] virtual Module& model() = 0;
  /// For people.
  [[nodiscard]] virtual std::string description() const = 0;
  /// Trains to the end of the epoch. After each step, `step_done` hears where the epoch stands. Sets loss and
  /// seeds of `result`. Throws Error when the loss is not finite. Collective.
  void epoch(Optimizer& optimizer, Epoch& result, EpochTimer& timer, EpochProgress from,
             FunctionRef<void(const EpochProgress&, Index num_batches)> step_done);
  /// Of metric_names(). Collective.
  [[nodiscard]] virtual std::vector<Scores> evaluate() = 0;
  /// Writes what --predict asks for. Collective.
  virtual void predict() = 0;

 protected:
  /// `input` outlives this, too.
  Steps(const GraphShardManager& graph, const NodeData& data, NodeInput& input,
        std::span<const Relations> relations, const TrainOptions& o)
      : graph_(graph), comm_(graph.comm()), data_(data), input_(input), relations_(relations), o_(o) {}

  [[nodiscard]] virtual Index num_batches() const = 0;  ///< 0: an epoch is a step on the whole graph
  [[nodiscard]] virtual Index num_seeds() const = 0;    ///< of all batches
  virtual void start_epoch(std::uint64_t epoch, Index first_batch) = 0;
  /// Samples the next batch; the number of this rank's seeds, or none after the last one. Collective.
  [[nodiscard]] virtual std::optional<Index> next_batch() = 0;
  /// The forward pass on the batch, or on the whole graph. Collective.
  [[nodiscard]] virtual Variable loss() = 0;

  /// What the first layer reads of the sources of blocks. Collective.
  [[nodiscard]] Variable input_of(const BlockData& part) const {
    return input_.of(part.blocks.front().src_rows());
  }

  const GraphShardManager& graph_;
  const Communicator& comm_;
  const NodeData& data_;
  NodeInput& input_;
  std::span<const Relations> relations_;
  const TrainOptions& o_;

 private:
  double step(Optimizer& optimizer, EpochTimer& timer);
};

}  // namespace sar::tools
