// SPDX-License-Identifier: MIT

/// The data of --task potential, structures of atoms with energies, forces and stresses; the potential that a
/// training begins with, what it computes, and its steps.
///
/// Room tools/train/atoms: `train --task potential`: its data, energies of single atoms, steps and errors.
#pragma once

#include "heartbeat.hpp"
#include "train/atoms/structure_errors.hpp"
#include "train/train_steps.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::tools {

/// Collective. Loads the structures of a training, and prints which keys of the files are labels and which
/// are not used. The rows of TrainingGraph::data are structures, as in load_training_samples(), first those
/// of --dataset, then those of --valid-file, --test-file and --watch-file. Throws InputError as
/// formats::read_extended_xyz, neighbor_samples and load_potential, for a training without energies or whose
/// loss has no term, and for a species that the potential of --init-weights does not know.
TrainingGraph load_training_potential(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat);

/// Collective. Returns the description of the potential of a run, with energy shifts and scales as
/// --energy-shifts and --energy-scale say: fitted to the training structures by fit_potential(), or with
/// --init-weights to what its potential leaves of their energies, unless they are given or kept. Prints where
/// they come from, and warnings of energies of atoms that the structures do not determine, or that are not
/// those of --init-weights. Throws InputError for a species that only structures have which the training does
/// not use, for an isolated atom that is missing, and for names of no species.
ModelDescription describe_potential(const Communicator& comm, const TrainingGraph& loaded,
                                    const TrainOptions& o);

/// Local. Returns a potential of this description: with drawn weights, or with those of `initial`, whose last
/// layer is divided by what the energy scale has grown by, so that it computes the same. A committee of
/// potentials is moved out of `initial`. Throws InputError for another scale than that of `initial`, if that
/// has several, and for other shifts or scales than those of a committee.
Potential start_potential(const ModelDescription& description, Potential* initial, Generator& gen);

/// The numbers of the species of the local atoms.
RowIds species_of(const SpreadBatch& batch);

/// Collective. Returns, for each structure of this rank, what is predicted in place of labels, without atoms
/// and cell: of those that are `wanted`, energies, forces and, where there is a volume, stresses; with
/// `deviations`, those of a committee, too.
std::vector<formats::AtomStructure> predict_structures(const TrainingGraph& g, const TrainOptions& o,
                                                       Potential& potential, std::span<const Index> wanted,
                                                       bool deviations = false);

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
