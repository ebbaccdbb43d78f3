// SPDX-License-Identifier: MIT

/// Steps of predicting labels of nodes.
#pragma once

#include "train_label_steps.hpp"

#include <string>
#include <vector>

namespace sar::tools {

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
  [[nodiscard]] Variable scores_of(const Batch& batch) override { return apply(model_, batch); }

 private:
  LayerStack model_;
};

}  // namespace sar::tools
