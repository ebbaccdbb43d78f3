// SPDX-License-Identifier: MIT

/// The data of --task potential: structures of atoms with energies, forces and stresses.
///
/// Room tools/train/atoms: `train --task potential`: its data, energies of single atoms, steps and errors.
#pragma once

#include "heartbeat.hpp"
#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"

#include <sar/models.hpp>

namespace sar::tools {

/// Collective. Loads the structures of a training, and prints which keys of the files are labels and which
/// are not used. The rows of TrainingGraph::data are structures, as in load_training_samples(), first those
/// of --dataset, then those of --valid-file, --test-file and --watch-file. Throws InputError as
/// formats::read_extended_xyz, neighbor_samples and load_potential, for a training without energies or whose
/// loss has no term, and for a species that the potential of --init-weights does not know.
TrainingGraph load_training_potential(const Communicator& comm, TrainOptions& o, Heartbeat& heartbeat);

}  // namespace sar::tools
