// SPDX-License-Identifier: MIT

/// One run: a network trained from its first weights to its results. Several runs in one start: their
/// options, and what their results are on average.
#pragma once

#include "heartbeat.hpp"
#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"
#include "train/train_progress.hpp"

#include <string>
#include <vector>

namespace sar::tools {

/// Collective. Makes the directories of the results, so that a failure appears before the training. Throws
/// InputError, the same on every rank, for a place that cannot be written.
void check_outputs(const Communicator& comm, const TrainOptions& o);

/// Collective. Trains with the input and the generator of `loaded`, writes what the options ask for and
/// returns what the run has reached. `given`: the description of the network before the weights were looked
/// at.
RunResult train_run(TrainingGraph& loaded, const TrainOptions& o, const ModelDescription& given,
                    Heartbeat& heartbeat);

/// Returns the splits to run on, of a dataset with so many. Throws InputError for one that it has not.
std::vector<Index> splits_of_runs(const TrainOptions& o, Index count, const std::string& dataset);

/// Returns the options of each run: for each of the splits, --runs seeds from --seed on. If there are several
/// runs, each has a folder of its own in --checkpoint, --predict and --tensorboard (DIR/seed-3), and
/// --save-weights and --curves a file (w.seed-3.safetensors).
std::vector<TrainOptions> options_of_runs(const TrainOptions& o, const std::vector<Index>& splits);

/// Collective. Prints a table of several runs with the mean and the sample standard deviation (n - 1) of
/// their scores, and adds a line to the log. Throws InputError if it cannot be written.
void report_runs(const Communicator& comm, const std::vector<TrainOptions>& runs,
                 const std::vector<RunResult>& results);

}  // namespace sar::tools
