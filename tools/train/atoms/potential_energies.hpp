// SPDX-License-Identifier: MIT

/// The energies of single atoms of a potential and the scale of its network's energies, and the potential
/// that a training begins with.
#pragma once

#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"

#include <sar/models.hpp>

namespace sar::tools {

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

}  // namespace sar::tools
