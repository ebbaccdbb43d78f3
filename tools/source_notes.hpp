/// What the programs print about the graph that they read.
#pragma once

#include <sar/graph/data/graph_source.hpp>

#include <string>

namespace sar::tools {

/// Prints a line that says what was found, then the notes of the source. Local, for one rank.
void print_notes(const GraphSource& source, const std::string& found);

}  // namespace sar::tools
