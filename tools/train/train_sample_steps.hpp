/// Steps of predicting labels of graphs.
#pragma once

#include "train_samples.hpp"
#include "train_steps.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

class SampleSteps : public Steps {
 public:
  /// Collective. `loaded` must outlive this.
  SampleSteps(TrainingGraph& loaded, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::vector<Scores> evaluate() override;
  void predict() override;

 protected:
  [[nodiscard]] Index num_batches() const override { return loader_ ? loader_->num_batches() : 0; }
  [[nodiscard]] Index num_seeds() const override { return loader_ ? loader_->num_samples() : 0; }
  void start_epoch(std::uint64_t epoch, Index first_batch) override {
    loader_->start_epoch(epoch, first_batch);
  }
  [[nodiscard]] std::optional<Index> next_batch() override;
  [[nodiscard]] Variable loss() override;

 private:
  /// Collective. The scores of a batch.
  [[nodiscard]] Variable scores_of(const SampleBatch& batch) {
    return model_(batch, encoder_(batch), encoder_.edges(batch));
  }
  /// Collective. The scores of all graphs of this rank, [graphs, outputs].
  [[nodiscard]] Tensor scores_of_all();

  const SampleTask& task_;
  SampleInput encoder_;
  LayerStack model_;
  std::vector<double> class_weights_;  // empty: all 1
  std::optional<SampleLoader> loader_;
  std::optional<SampleMiniBatch> batch_;
};

}  // namespace sar::tools
