// SPDX-License-Identifier: MIT

/// Steps of predicting labels of graphs.
#pragma once

#include "train_sample_batches.hpp"
#include "train_samples.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

class SampleSteps : public SampleBatchSteps {
 public:
  /// Collective. `loaded` must outlive this.
  SampleSteps(TrainingGraph& loaded, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::vector<Scores> evaluate() override;
  void predict() override;

 protected:
  [[nodiscard]] std::optional<Index> next_batch() override;
  [[nodiscard]] Variable loss() override;

 private:
  [[nodiscard]] Array<std::int64_t> labels_of_batch() const;
  /// Collective. The scores of some graphs of this rank.
  [[nodiscard]] Variable scores_of(const Array<Index>& positions) {
    const SampleBatch batch(comm_, samples_->select(positions), o_.graph_options);
    return model_(batch, encoder_(batch), encoder_.edges(batch));
  }
  /// Collective. The scores of graphs of this rank, [graphs, outputs]; 0 of those that are not computed.
  [[nodiscard]] Tensor scores_of_samples(Which which);

  const SampleTask& task_;
  SampleInput encoder_;
  LayerStack model_;
  std::vector<double> class_weights_;  // empty: all 1
};

}  // namespace sar::tools
