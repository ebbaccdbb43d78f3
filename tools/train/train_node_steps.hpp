/// Training for classes of nodes.
#pragma once

#include "train_predict.hpp"
#include "train_steps.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

class NodeSteps : public Steps {
 public:
  /// Collective.
  NodeSteps(const GraphShardManager& graph, const NodeData& data, NodeInput& input,
            std::span<const Relations> relations, const TrainOptions& o, const ModelOptions& model,
            Generator& gen);

  [[nodiscard]] Module& model() override { return model_; }
  /// What predict() writes of a graph of many types.
  void predict_types(std::span<const PredictedNodes> types) { types_ = types; }
  [[nodiscard]] std::string description() const override;
  /// On the whole graph, or where it is wanted on sampled neighbours.
  [[nodiscard]] std::vector<Scores> evaluate() override;
  void predict() override;

 protected:
  [[nodiscard]] Index num_batches() const override { return loader_ ? loader_->num_batches() : 0; }
  [[nodiscard]] Index num_seeds() const override { return loader_ ? loader_->num_seeds() : 0; }
  void start_epoch(std::uint64_t epoch, Index first_batch) override;
  [[nodiscard]] std::optional<Index> next_batch() override;
  [[nodiscard]] Variable loss() override;

 private:
  /// Message flow graphs for some nodes, and their labels.
  struct Part {
    BlockData data;
    Array<std::int64_t> labels;
    Array<std::uint8_t> mask;  // all of them
  };
  [[nodiscard]] Part part_of(std::vector<MessageFlowGraph> blocks) const;
  [[nodiscard]] Tensor logits_of_samples();

  ModelOptions options_;
  NodeClassifier model_;
  std::span<const PredictedNodes> types_;
  std::optional<Part> part_;          // the batch, or with --mfg what the training nodes depend on
  std::optional<DataLoader> loader_;  // --sample
};

}  // namespace sar::tools
