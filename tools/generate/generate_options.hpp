// SPDX-License-Identifier: MIT

/// The command line of `generate`.
#pragma once

#include <sar/graph/data/generators.hpp>

#include <string>

namespace CLI {
class App;
}

namespace sar::tools {

struct GenerateOptions {
  SbmOptions sbm;
  std::string words;  ///< a dataset whose papers and words become the graph; empty: none
  std::string out;    ///< directory
};

void add_options(CLI::App& app, GenerateOptions& o);

}  // namespace sar::tools
