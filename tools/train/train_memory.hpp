// SPDX-License-Identifier: MIT

/// Checks before a training that it fits in memory. Each throws InputError, the same on every rank, and is
/// collective.
#pragma once

#include "options/train_options.hpp"
#include "train_edges.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

namespace sar::tools {

/// Collective. Parameters and rows of the model `m`.
void require_memory_of_model(const Communicator& comm, const TrainOptions& o, const ModelDescription& m,
                             const NodeData& data, Index in_feats, Index num_classes, Index num_types);

/// Collective. The negative pairs of a step, and the scores of an evaluation.
void require_memory_of_pairs(const Communicator& comm, const TrainOptions& o, const EdgeTask& edges);

}  // namespace sar::tools
