// SPDX-License-Identifier: MIT

/// Options of `train` that nothing reads.
#pragma once

#include "train_options.hpp"

namespace CLI {
class App;
}

namespace sar::tools {

/// Refuses options that have no effect with the values of other options. Throws CLI::ValidationError.
void refuse_unread(const CLI::App& app, const TrainOptions& o);

}  // namespace sar::tools
