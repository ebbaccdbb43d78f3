/// Steps of training a potential.
#pragma once

#include "train_potential.hpp"
#include "train_steps.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sar::tools {

class PotentialSteps : public Steps {
 public:
  /// Collective. `loaded` must outlive this; its model becomes the description of the potential.
  PotentialSteps(TrainingGraph& loaded, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return potential_.network(); }
  [[nodiscard]] std::string description() const override;
  /// Errors of energies in meV per atom, of forces in meV/A, of stresses in meV/A^3.
  [[nodiscard]] std::vector<Scores> evaluate() override;
  /// Writes the structures with predicted energies, forces and stresses to DIR/predictions.xyz, and those of
  /// --valid-file and --test-file to DIR/valid.xyz and DIR/test.xyz.
  void predict() override;

 protected:
  [[nodiscard]] Index num_batches() const override { return loader_ ? loader_->num_batches() : 0; }
  [[nodiscard]] Index num_seeds() const override { return loader_ ? loader_->num_samples() : 0; }
  void start_epoch(std::uint64_t epoch, Index first_batch) override {
    loader_->start_epoch(epoch, first_batch);
  }
  [[nodiscard]] std::optional<Index> next_batch() override;
  [[nodiscard]] double add_gradients(EpochTimer& timer) override;

 private:
  /// Collective. The labels of a batch; energies are without the shifts.
  [[nodiscard]] LabelledAtoms labels_of(const SampleMiniBatch& batch) const;
  /// Collective. The structures of this rank with predicted energies, forces and stresses; a stress is 0
  /// where there is no volume.
  [[nodiscard]] std::vector<formats::AtomStructure> predicted();

  const PotentialTask& task_;
  std::shared_ptr<const GraphSamples> samples_;
  Potential potential_;
  std::optional<SampleLoader> loader_;
  std::optional<SampleMiniBatch> batch_;
};

}  // namespace sar::tools
