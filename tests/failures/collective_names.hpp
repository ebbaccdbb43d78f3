/// What the public headers say to be collective.
#pragma once

#include <set>
#include <string>

namespace sar::test {

/// "graph/message/attention.hpp gat_attention" for each function, and each class, whose comment says "Collective", or
/// that stands in a file whose first comment says so of all its functions and does not call itself local.
std::set<std::string> collective_names(const std::string& source_directory);

}  // namespace sar::test
