// SPDX-License-Identifier: MIT

/// The options of `train` that say which graph is read, and how.
#pragma once

#include "train_options.hpp"

#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sar::tools {

/// Adds the group Data. Returns the options that only files in formats of others need.
std::vector<CLI::Option*> add_data_options(CLI::App& app, TrainOptions& o);

}  // namespace sar::tools
