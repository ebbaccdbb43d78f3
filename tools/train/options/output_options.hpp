// SPDX-License-Identifier: MIT

/// The options of `train` about ranks and threads, and about the files that it writes.
#pragma once

#include "train_options.hpp"

namespace CLI {
class App;
}

namespace sar::tools {

/// Adds the group Parallel.
void add_parallel_options(CLI::App& app, TrainOptions& o);

/// Adds the group Output, after all other groups.
void add_output_options(CLI::App& app, TrainOptions& o);

}  // namespace sar::tools
