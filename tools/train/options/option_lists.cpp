// SPDX-License-Identifier: MIT
#include "option_lists.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

namespace sar::tools {

std::vector<Index> read_list(const std::string& option, const std::string& text, Index least,
                             const char* expected) {
  std::vector<Index> numbers;
  for (std::string_view rest = text; numbers.empty() || !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto number = to_number<Index>(rest.substr(0, comma));
    if (!number || *number < least || comma + 1 == rest.size())
      throw CLI::ValidationError(option, "'" + text + "', expected " + expected);
    numbers.push_back(*number);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return numbers;
}

}  // namespace sar::tools
