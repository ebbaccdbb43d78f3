// SPDX-License-Identifier: MIT

/// The data of --task potential, structures of atoms with energies, forces and stresses; the potential that a
/// training begins with, what it computes, and its steps.
///
/// Room tools/train/atoms: `train --task potential`: its data, energies of single atoms, steps and errors.
#pragma once

#include "heartbeat.hpp"
#include "train/train_steps.hpp"

#include <memory>
#include <span>
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

/// Collective. `loaded` must outlive the steps; its model becomes the description of the potential.
std::unique_ptr<Steps> make_potential_steps(TrainingGraph& loaded, const TrainOptions& o);

}  // namespace sar::tools
