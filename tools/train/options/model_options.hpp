// SPDX-License-Identifier: MIT

/// The options of `train` that describe the network.
#pragma once

#include "train_options.hpp"

namespace CLI {
class App;
}

namespace sar::tools {

/// Adds the group Model.
void add_model_options(CLI::App& app, TrainOptions& o);

/// Checks the options of the network's layers. Throws CLI::ValidationError.
void check_network(const CLI::App& app, const ModelDescription& m);

}  // namespace sar::tools
