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

/// Collective. Returns, for each structure of this rank, what is predicted in place of labels, without atoms
/// and cell: of those that are `wanted`, energies, forces and, where there is a volume, stresses; with
/// `deviations`, those of a committee, too.
std::vector<formats::AtomStructure> predict_structures(const TrainingGraph& g, const TrainOptions& o,
                                                       Potential& potential, std::span<const Index> wanted,
                                                       bool deviations = false);

}  // namespace sar::tools
