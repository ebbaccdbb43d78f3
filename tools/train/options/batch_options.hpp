// SPDX-License-Identifier: MIT

/// The options of `train` about mini-batches.
#pragma once

#include "train_options.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sar::tools {

/// Adds the group Sampling.
void add_sample_options(CLI::App& app, TrainOptions& options);

/// Returns the fan-outs "15,10,5". Throws CLI::ValidationError, which names the option.
std::vector<Index> read_fan_outs(const std::string& option, const std::string& text);

/// Checks the draws of mini-batches. Throws CLI::ValidationError.
void check_clusters(const TrainOptions& o);

}  // namespace sar::tools
