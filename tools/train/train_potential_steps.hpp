// SPDX-License-Identifier: MIT

/// Steps of training a potential.
#pragma once

#include "train_potential.hpp"
#include "train_steps.hpp"

#include <string>
#include <vector>

namespace sar::tools {

class PotentialSteps : public Steps {
 public:
  /// Collective. `loaded` must outlive this; its model becomes the description of the potential.
  PotentialSteps(TrainingGraph& loaded, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return potential_.network(); }
  [[nodiscard]] std::string description() const override;

 protected:
  /// Errors of energies in meV per atom, of forces in meV/A, of stresses in meV/A^3.
  [[nodiscard]] std::vector<Scores> scores() override;
  /// Writes the structures with predicted energies, forces and stresses to DIR/predictions.xyz, and those of
  /// --valid-file and --test-file to DIR/valid.xyz and DIR/test.xyz.
  void write_predictions() override;
  [[nodiscard]] double add_gradients(const Batch& batch, EpochTimer& timer) override;

 private:
  /// Collective. The labels of the structures at these positions, which `batch` has; energies are without the
  /// shifts.
  [[nodiscard]] LabelledAtoms labels_of(const Array<Index>& positions, const SpreadBatch& batch) const;
  /// Collective. The structures of this rank, and those that are computed with predicted energies, forces
  /// and, where there is a volume, stresses in place of their labels.
  [[nodiscard]] std::vector<formats::AtomStructure> predicted(Which which);

  const PotentialTask& task_;
  const GraphSamples& samples_;
  Potential potential_;
};

}  // namespace sar::tools
