// SPDX-License-Identifier: MIT

/// Which options of `train` can be combined.
#pragma once

#include "train_options.hpp"

#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sar::tools {

/// Checks which options can be combined; `source` are those that only files in formats of others need. Throws
/// CLI::ValidationError.
void check_options(const CLI::App& app, const TrainOptions& o, const std::vector<CLI::Option*>& source);

}  // namespace sar::tools
