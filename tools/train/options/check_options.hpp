// SPDX-License-Identifier: MIT

/// Which values of several options of `train` can be combined.
#pragma once

#include "option_table.hpp"

namespace sar::tools {

/// Checks what a row of the table does not say. Throws CLI::ValidationError.
void check_options(const CLI::App& app, const TrainOptions& o, const OptionTable& table);

}  // namespace sar::tools
