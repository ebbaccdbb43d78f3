// SPDX-License-Identifier: MIT

/// Steps of training a potential.
#pragma once

#include "train/atoms/structure_errors.hpp"
#include "train/train_steps.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace sar::tools {

class PotentialSteps : public Steps {
 public:
  /// Collective. `loaded` must outlive this; its model becomes the description of the potential.
  PotentialSteps(TrainingGraph& loaded, const TrainOptions& o);

  [[nodiscard]] Module& model() override { return potential_.network(); }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] std::map<std::string, double> lr_factors() const override {
    return potential_.network().lr_factors(o_.lr_factors);
  }
  /// Writes the learner of --save-learner, after all else. Tells errors by kind and the largest ones, unless
  /// nobody asks: there is one kind and no --predict. Writes the structures with predicted energies, forces
  /// and stresses to DIR/predictions.xyz, those of
  /// --valid-file,
  /// --test-file and --watch-file to DIR/valid.xyz, DIR/test.xyz and DIR/watch.xyz, and DIR/errors.csv.
  void predict() override;
  [[nodiscard]] nlohmann::ordered_json report() const override { return errors_; }
  /// Scales the deviations of a committee by what it errs on validation structures, and says so.
  void finish() override;

 protected:
  /// Errors of energies in meV per atom, of forces in meV/A, of stresses in meV/A^3.
  [[nodiscard]] std::vector<Scores> scores() override;
  [[nodiscard]] double add_gradients(const Batch& batch, EpochTimer& timer) override;

 private:
  /// Collective. The labels of the structures at these positions, which `batch` has; energies are without the
  /// shifts.
  [[nodiscard]] LabelledAtoms labels_of(const Array<Index>& positions, const SpreadBatch& batch) const;
  /// The weights of the terms in this epoch.
  [[nodiscard]] PotentialWeights weights() const;
  /// Collective. Predictions, as of predict_structures(), of the structures in these parts.
  [[nodiscard]] std::vector<formats::AtomStructure> predicted(const std::vector<DataPart>& parts,
                                                              bool deviations = false);
  void scale_deviations();
  void save_learner();
  void write_structures(std::vector<formats::AtomStructure> found) const;

  const PotentialTask& task_;
  Potential potential_;
  StructureKinds kinds_;
  std::vector<std::array<double, 3>> weights_;  // of each structure of this rank; empty: 1, on all ranks
  nlohmann::ordered_json errors_;
};

}  // namespace sar::tools
