// SPDX-License-Identifier: MIT

/// Steps over batches of graph samples.
#pragma once

#include "train_steps.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace sar::tools {

class SampleBatchSteps : public Steps {
 protected:
  /// `loaded`, whose samples these are, must outlive this.
  SampleBatchSteps(TrainingGraph& loaded, const TrainOptions& o)
      : Steps(loaded.graph, loaded.data, *loaded.input, loaded.relations, o),
        samples_(loaded.samples->samples) {}
  /// Collective. Makes the batches of the training samples, unless there are no epochs.
  void start_batches();
  /// Which samples are computed: all of them, or those that are in a split.
  enum class Which { all, in_splits };
  /// Collective. Calls `each` with the positions of batches of samples of this rank, in order; the number of
  /// batches is the same on every rank.
  void for_batches(Which which, FunctionRef<void(const Array<Index>& positions)> each) const;

  [[nodiscard]] Index num_batches() const override { return loader_ ? loader_->num_batches() : 0; }
  [[nodiscard]] Index num_seeds() const override { return loader_ ? loader_->num_samples() : 0; }
  void start_epoch(std::uint64_t epoch, Index first_batch) override {
    loader_->start_epoch(epoch, first_batch);
  }
  [[nodiscard]] std::optional<Index> next_batch() override;

  std::shared_ptr<const GraphSamples> samples_;
  Array<Index> positions_;  // of this rank's samples of the batch

 private:
  std::optional<SampleLoader> loader_;
};

}  // namespace sar::tools
