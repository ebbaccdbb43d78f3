// SPDX-License-Identifier: MIT

/// Errors of structures: by their kind and split, the largest ones, and a table of all.
#pragma once

#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <string>
#include <vector>

namespace sar::tools {

/// Errors of one structure; NaN where it has no label. In eV, eV per atom, eV/A and eV/A^3.
struct StructureErrors {
  Index file = 0, number = 0;  ///< file of PotentialTask, structure in it
  Index kind = 0;              ///< number in StructureKinds::names
  Index atoms = 0;
  DataPart part = DataPart::none;
  double label = 0, energy = 0;                                ///< energy of the label, and what is predicted
  double force_sum = 0, force_squares = 0;  ///< of absolute errors and their squares, over components
  double largest_force = 0;                 ///< length of the largest error of an atom's force
  double stress_sum = 0, stress_squares = 0;                   ///< over 9 components
  bool has_forces = false, has_stress = false;
  // of a committee; NaN: there is none
  double energy_deviation = formats::no_label;
  double force_deviation = formats::no_label, largest_deviation = formats::no_label;  ///< root mean square
};

/// How large errors are beside the deviations of a committee.
struct DeviationFit {
  double energy = 1, forces = 1;  ///< root of sum of squared errors / sum of squared deviations; 1: unknown
};

/// Collective. Of the structures that have deviations, which are not scaled. The same bits on any number of
/// ranks.
DeviationFit fit_deviations(const Communicator& comm, const std::vector<StructureErrors>& mine);

/// The kinds of structures of all ranks, by the key of --kind-key; a structure without it has the kind "-".
struct StructureKinds {
  std::vector<std::string> names;  ///< sorted
  std::vector<Index> of;           ///< the number of each structure of this rank

  /// Collective. Throws InputError, the same on every rank, for a key or a kind with a weight that no
  /// structure has.
  StructureKinds(const Communicator& comm, const PotentialTask& task, const PotentialOptions& o);
};

/// The keys of a structure that weight it in the loss, as MACE reads them: of all its terms, of the energy,
/// of forces, of stresses.
std::vector<std::string> weight_keys();

/// Local. Returns the weights of a structure's energy, forces and stress: what its keys say times that of its
/// kind. Throws InputError, which begins with `place`, for a weight that is not a number of 0 or more.
std::array<double, 3> weights_of(const formats::AtomStructure& structure, const PotentialOptions& o,
                                 const std::string& place);

/// The part of the data that a structure of this rank is in.
DataPart part_of(const TrainingGraph& g, Index structure);

/// Local. Returns the errors of the structures of this rank that are in some part and have predictions.
std::vector<StructureErrors> errors_of(const TrainingGraph& g, const StructureKinds& kinds,
                                       const std::vector<formats::AtomStructure>& predicted);

/// Collective. Prints, on rank 0, mean errors for each kind and part, if there are several kinds, and the
/// structures with the largest errors of each part. Writes the errors of all structures to the CSV file
/// `table`, unless it is empty. Returns the means as JSON: a list with an object for each kind and part.
nlohmann::ordered_json report_errors(const Communicator& comm, const PotentialTask& task,
                                     const StructureKinds& kinds, const std::vector<StructureErrors>& mine,
                                     const std::string& table);

}  // namespace sar::tools
