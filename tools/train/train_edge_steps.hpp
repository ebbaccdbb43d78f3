// SPDX-License-Identifier: MIT

/// Training for links, and for labels of edges.
#pragma once

#include "train_edges.hpp"
#include "train_predict.hpp"
#include "train_steps.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

/// A network that computes node representations, and a predictor that maps the two ends of a pair to scores.
class EdgeModel : public Module {
 public:
  EdgeModel(const TrainOptions& o, const ModelDescription& network, bool cached, Index num_types,
            Index num_classes, const Communicator& comm, Generator& gen);

  [[nodiscard]] LayerStack& network() { return network_; }
  /// The predictor with relations; null for other predictors.
  [[nodiscard]] const RelationPredictor* relations() const noexcept { return relations_.get(); }
  /// Maps the rows of both ends [n, hidden] to scores [n, 1 or classes]; `types` of the pairs: empty means
  /// all 0.
  [[nodiscard]] Variable operator()(const Variable& src, const Variable& dst, Array<Index> types) const;

 private:
  LayerStack network_;
  DotPredictor dot_;
  std::optional<MLPPredictor> mlp_;
  std::unique_ptr<RelationPredictor> relations_;
};

class EdgeSteps : public Steps {
 public:
  /// Collective. `g` must outlive this.
  EdgeSteps(TrainingGraph& g, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override { return description_; }

 protected:
  /// Computes representations on the whole graph.
  [[nodiscard]] std::vector<Scores> scores() override;
  void write_predictions() override;
  [[nodiscard]] LayerStack& network() { return model_.network(); }
  [[nodiscard]] Variable loss(const Batch& batch) override;

 private:
  [[nodiscard]] bool is_link() const { return o_.task.type == TaskType::link; }
  [[nodiscard]] std::unique_ptr<BatchSource> make_batches() const;
  [[nodiscard]] std::unique_ptr<BatchSource> make_whole_epochs() const;
  void describe_task();
  /// Collective. Returns the scores of pairs of any nodes, computed in batches of limited size.
  [[nodiscard]] Tensor numbers_of(const Variable& h, std::span<const Index> src, std::span<const Index> dst,
                                  std::span<const Index> types) const;
  [[nodiscard]] NodePairList draw(const NegativeSampler& sampler, std::span<const Index> src,
                                  std::span<const Index> ids, std::uint64_t epoch) const;
  /// Collective. Returns the scores of k sampled negatives per edge of `part`, drawn and computed in
  /// batches.
  [[nodiscard]] Tensor numbers_of_drawn(const Variable& h, const TaskEdges& part, std::uint64_t epoch) const;
  void evaluate_links(const Variable& h, const TaskEdges& part, std::uint64_t epoch, double Scores::*score,
                      std::vector<Scores>& scores) const;
  /// Collective. Returns MRR and Hits@K among all nodes.
  [[nodiscard]] RankMetrics rank_among_all(const Variable& h, const TaskEdges& part) const;
  void evaluate_labels(const Variable& h, const TaskEdges& part, double Scores::*score,
                       std::vector<Scores>& scores) const;

  const EdgeTask& task_;
  EdgeModel model_;
  std::string description_;
  std::optional<NegativeSampler> eval_negatives_;
  std::optional<KnownEdges> known_;  // --filtered-ranks
};

}  // namespace sar::tools
