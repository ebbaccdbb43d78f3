// SPDX-License-Identifier: MIT

/// What a potential computes of structures.
#pragma once

#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"

#include <sar/models.hpp>

#include <span>
#include <vector>

namespace sar::tools {

/// The numbers of the species of the local atoms.
RowIds species_of(const SpreadBatch& batch);

/// Collective. Returns the structures of this rank; those that are `wanted` with predicted energies, forces
/// and, where there is a volume, stresses in place of their labels; with `deviations`, those of a committee,
/// too.
std::vector<formats::AtomStructure> predict_structures(const TrainingGraph& g, const TrainOptions& o,
                                                       Potential& potential, std::span<const Index> wanted,
                                                       bool deviations = false);

}  // namespace sar::tools
