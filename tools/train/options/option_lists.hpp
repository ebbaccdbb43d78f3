// SPDX-License-Identifier: MIT

/// Lists of numbers on the command line.
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <string>
#include <vector>

namespace sar::tools {

/// Returns whole numbers from `least` on that are separated by commas. Throws CLI::ValidationError, which
/// names the option and what was `expected`.
std::vector<Index> read_list(const std::string& option, const std::string& text, Index least,
                             const char* expected);

}  // namespace sar::tools
