/// The steps of an epoch of `train`: one on all nodes, or one for each mini-batch.
#pragma once

#include "train_log.hpp"
#include "train_models.hpp"
#include "train_options.hpp"

#include <sar/sar.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

/// Message flow graphs, and what a network reads on them.
struct BlockData {
  std::vector<MessageFlowGraph> blocks;
  std::vector<Relations> relations;
  Tensor features;             ///< of the first one's sources
  Array<std::int64_t> labels;  ///< of the last one's destinations, the seeds
  Array<std::uint8_t> mask;    ///< all of them

  /// `of_graph`: relations of the whole graph. Collective.
  BlockData(std::vector<MessageFlowGraph> graphs, const NodeData& data, std::span<const Relations> of_graph);
};

/// Global ids of this rank's nodes that one of the masks has.
Array<Index> nodes_in(const NodeData& data, int rank, std::span<const Array<std::uint8_t>* const> masks);

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

/// Trains one model on one graph, which both outlive this.
class Steps {
 public:
  /// Collective.
  Steps(const GraphShardManager& graph, const NodeData& data, std::span<const Relations> relations,
        const TrainOptions& o, NodeClassifier& model, Optimizer& optimizer);

  /// Trains to the end of the epoch. After each step, `step_done` hears where the epoch stands. Sets loss and
  /// seeds of `result`. Throws Error when the loss is not finite. Collective.
  void epoch(Epoch& result, EpochTimer& timer, EpochProgress from,
             FunctionRef<void(const EpochProgress&, Index num_batches)> step_done);

  /// Accuracies of all nodes: on the whole graph, or where it is wanted on sampled neighbours. Collective.
  Accuracies evaluate();

 private:
  double step(EpochTimer& timer, const BlockData* batch);
  Tensor logits_of_samples();

  const GraphShardManager& graph_;
  const Communicator& comm_;
  const NodeData& data_;
  std::span<const Relations> relations_;
  const TrainOptions& o_;
  NodeClassifier& model_;
  Optimizer& optimizer_;
  std::optional<BlockData> part_;     // --mfg: what the training nodes depend on
  std::optional<DataLoader> loader_;  // --sample
};

}  // namespace sar::tools
