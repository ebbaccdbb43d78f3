// SPDX-License-Identifier: MIT

/// Steps of predicting labels of graphs.
#pragma once

#include "train_label_steps.hpp"
#include "train_samples.hpp"

#include <string>
#include <vector>

namespace sar::tools {

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
