// SPDX-License-Identifier: MIT

/// The data of --task potential: structures of atoms with energies, forces and stresses.
#pragma once

#include "heartbeat.hpp"
#include "options/train_options.hpp"
#include "train_graph.hpp"

#include <sar/models.hpp>

namespace sar::tools {

/// Collective. Loads the structures of a training, and prints which keys of the files are labels and which
/// are not used. The rows of TrainingGraph::data are structures, as in load_training_samples(), first those
/// of --dataset, then those of --valid-file and --test-file. Throws InputError as
/// formats::read_extended_xyz, neighbor_samples and load_potential, for a training without energies or whose
/// loss has no term, and for a species that the potential of --init-weights does not know.
TrainingGraph load_training_potential(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat);

/// Collective. Returns the description of the potential of a run: that of --init-weights, or one whose energy
/// shifts and scales are fitted to the training structures by fit_potential(). Prints warnings of energies of
/// atoms that the structures do not determine, or that are not those of --init-weights. Throws InputError for
/// a species that only structures have which the training does not use.
ModelDescription describe_potential(const Communicator& comm, const TrainingGraph& loaded,
                                    const TrainOptions& o);

}  // namespace sar::tools
