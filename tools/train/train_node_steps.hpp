// SPDX-License-Identifier: MIT

/// Steps of predicting labels of nodes.
#pragma once

#include "train_predict.hpp"
#include "train_steps.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

class NodeSteps : public Steps {
 public:
  /// Collective. `clusters`: of each node of this rank, for --clusters.
  NodeSteps(const Graph& graph, const NodeData& data, NodeInput& input,
            std::span<const GraphRelations> relations, const TrainOptions& o, const ModelDescription& model,
            bool cached, Generator& gen, std::span<const std::int32_t> clusters = {});

  [[nodiscard]] Module& model() override { return model_; }
  /// Sets the node types that predict() writes, for a typed graph.
  void predict_types(std::span<const PredictedNodes> types) { types_ = types; }
  [[nodiscard]] std::string description() const override;
  /// Evaluates on the whole graph, or on sampled neighbors with --sample-eval.
  [[nodiscard]] std::vector<Scores> evaluate() override;
  void predict() override;

 protected:
  [[nodiscard]] Index num_batches() const override {
    return loader_           ? loader_->num_batches()
           : cluster_loader_ ? cluster_loader_->num_batches()
           : saint_loader_   ? saint_loader_->num_batches()
                             : 0;
  }
  [[nodiscard]] Index num_seeds() const override {
    if (saint_loader_) return std::numeric_limits<Index>::max();  // it varies
    return loader_ ? loader_->num_seeds() : cluster_seeds_;
  }
  void start_epoch(std::uint64_t epoch, Index first_batch) override;
  [[nodiscard]] std::optional<Index> next_batch() override;
  [[nodiscard]] Variable loss() override;

 private:
  /// Message flow graphs of some seed nodes, or the graph of some clusters, and labels of the last layer.
  struct Part {
    BlockData data;
    Array<std::int64_t> labels;
    Tensor targets;            // in place of classes
    Array<std::uint8_t> mask;  // all of them; of clusters and drawn nodes the training nodes
    std::optional<Tensor> loss_weights = std::nullopt;  // of drawn nodes
    Tensor input = {};                                  // with --halo-cache-bytes: also of the halo rows
  };
  [[nodiscard]] std::optional<Index> next_part();
  std::optional<Index> next_clusters();
  [[nodiscard]] std::optional<Index> next_drawn();
  [[nodiscard]] std::optional<Index> next_cached();
  void prepare_cache(std::uint64_t epoch);
  void load_ahead();
  /// Sets the batch to a graph of all layers; returns the number of its training nodes.
  [[nodiscard]] Index take(MessageFlowGraph graph);
  [[nodiscard]] Part part_of(std::vector<MessageFlowGraph> blocks) const;
  [[nodiscard]] Variable loss_of(const Variable& scores, std::span<const std::int64_t> labels,
                                 const Tensor& targets, std::span<const std::uint8_t> mask,
                                 const RowWeights& row_weights = std::nullopt) const;
  [[nodiscard]] Tensor scores_of_samples();

  LayerStack model_;
  std::vector<double> class_weights_;  // empty: all 1
  std::span<const PredictedNodes> types_;
  std::optional<Part> part_;          // the batch, or with --mfg what the training nodes depend on
  std::optional<DataLoader> loader_;  // --sample
  std::optional<ClusterLoader> cluster_loader_;
  std::optional<SaintLoader> saint_loader_;
  // --halo-cache-bytes: input rows of the next batch are in flight while a batch is computed
  struct Ahead {
    MiniBatch batch;
    HaloRowCache::Pending input;
  };
  std::optional<HaloRowCache> cache_;
  std::optional<Ahead> ahead_;
  bool is_ahead_ = false, is_counted_ = false;
  Index rows_pulled_ = 0;    // until the batch before
  double loss_terms_ = 0;    // of all training nodes: what the loss on the whole graph is divided by
  Index cluster_seeds_ = 0;  // training nodes of all clusters
};

}  // namespace sar::tools
