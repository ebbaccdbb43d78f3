// SPDX-License-Identifier: MIT

/// All options of `train`.
///
/// Room tools/train/options: The options of `train`: a table with a row for each, and their checks.
#pragma once

#include "train_options.hpp"

namespace CLI {
class App;
}

namespace sar::tools {

/// Adds the options. Parsing also detects the format of the dataset and checks the combination of options.
void add_options(CLI::App& app, TrainOptions& o);

}  // namespace sar::tools
