// SPDX-License-Identifier: MIT

/// What the public headers say to be collective.
#pragma once

#include <map>
#include <set>
#include <string>

namespace sar::test {

/// "graph/message/attention.hpp gat_attention" for each function, and each class, whose comment says
/// "Collective", or that stands in a file whose first comment says so of all its functions and does not call
/// itself local.
std::set<std::string> collective_names(const std::string& source_directory);

/// Collective functions that tests do not call by themselves, each with a reason.
std::map<std::string, std::string> internal_names();

}  // namespace sar::test
