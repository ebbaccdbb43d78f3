// SPDX-License-Identifier: MIT

/// The options of `train` about losses, optimizers, schedules and runs.
#pragma once

#include "train_options.hpp"

namespace CLI {
class App;
}

namespace sar::tools {

/// Adds the group Training.
void add_training_options(CLI::App& app, TrainOptions& o);

}  // namespace sar::tools
