// SPDX-License-Identifier: MIT

/// Steps of predicting labels of rows, which are nodes or graphs.
#pragma once

#include "train_samples.hpp"
#include "train_steps.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

/// What both have in common.
class LabelSteps : public Steps {
 protected:
  /// Collective. `g` must outlive this.
  LabelSteps(TrainingGraph& g, const TrainOptions& o);

  /// Collective. Returns the scores [batch.rows, outputs]; of the whole graph [local rows, outputs].
  [[nodiscard]] virtual Variable scores_of(const Batch& batch) = 0;
  /// Returns the loss of --loss on the training rows.
  [[nodiscard]] Variable loss(const Batch& batch) override;
  [[nodiscard]] bool counts(const Batch& batch) const override;

  /// Collective. Returns the scores of all rows of this rank, [rows, outputs]; 0 of those in no batch.
  [[nodiscard]] Tensor scores_of_all(BatchSource& batches);
  /// Collective. Returns the values of the metrics for the scores of all rows of this rank.
  [[nodiscard]] std::vector<Scores> values_of(const Tensor& scores) const;

  std::vector<double> class_weights_;  // empty: all 1

 private:
  /// The classes of some rows, and which of these count: training rows that have a label.
  struct RowClasses {
    Array<std::int64_t> classes;
    Array<std::uint8_t> mask;
  };
  [[nodiscard]] RowClasses classes_of(const Array<Index>& rows) const;
  [[nodiscard]] Tensor targets_of(const Array<Index>& rows) const;
  [[nodiscard]] Variable loss_of(const Variable& scores, std::span<const std::int64_t> classes,
                                 const Tensor& targets, std::span<const std::uint8_t> mask,
                                 const RowWeights& row_weights) const;
};

/// Steps of predicting labels of nodes.
class NodeSteps : public LabelSteps {
 public:
  /// Collective. `g` must outlive this.
  NodeSteps(TrainingGraph& g, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override { return describe_layers(model_.description()); }

 protected:
  /// On the whole graph, or on sampled neighbors with --sample-eval.
  [[nodiscard]] std::vector<Scores> scores() override;
  void write_predictions() override;
  /// False, too, where a batch norm would have fewer than two rows.
  [[nodiscard]] bool counts(const Batch& batch) const override;
  [[nodiscard]] Variable scores_of(const Batch& batch) override { return apply(model_, batch); }

 private:
  LayerStack model_;
};

/// Steps of predicting labels of graphs.
class SampleSteps : public LabelSteps {
 public:
  /// Collective. `g` must outlive this.
  SampleSteps(TrainingGraph& g, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override { return describe_layers(model_.description()); }

 protected:
  [[nodiscard]] std::vector<Scores> scores() override;
  void write_predictions() override;
  [[nodiscard]] Variable scores_of(const Batch& batch) override;
  /// A batch norm needs two nodes.
  [[nodiscard]] bool counts(const Batch& batch) const override;

 private:
  SampleInput encoder_;
  LayerStack model_;
};

}  // namespace sar::tools
