// SPDX-License-Identifier: MIT

/// Several runs in one start: their options, and what their results are on average.
#pragma once

#include "train/options/train_options.hpp"
#include "train/train_progress.hpp"

#include <sar/comm/communicator.hpp>

#include <vector>

namespace sar::tools {

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
