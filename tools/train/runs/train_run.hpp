// SPDX-License-Identifier: MIT

/// One run: a network trained from its first weights to its results.
#pragma once

#include "heartbeat.hpp"
#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"
#include "train/train_progress.hpp"

namespace sar::tools {

/// Collective. Makes the directories of the results, so that a failure appears before the training. Throws
/// InputError, the same on every rank, for a place that cannot be written.
void check_outputs(const Communicator& comm, const TrainOptions& o);

/// Collective. Trains with the input and the generator of `loaded`, writes what the options ask for and
/// returns what the run has reached. `given`: the description of the network before the weights were looked
/// at.
RunResult train_run(TrainingGraph& loaded, const TrainOptions& o, const ModelDescription& given,
                    Heartbeat& heartbeat);

}  // namespace sar::tools
