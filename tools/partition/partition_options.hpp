// SPDX-License-Identifier: MIT

/// The command line of `partition`.
#pragma once

#include "formats/source_options.hpp"
#include "source_widths.hpp"
#include "train/options/train_options.hpp"

#include <sar/graph/data/partition_graph.hpp>

#include <string>

namespace CLI {
class App;
}

namespace sar::tools {

struct PartitionOptions {
  std::string input;
  std::string out;     ///< directory
  std::string report;  ///< file; empty: none
  formats::SourceOptions source;
  PartitionGraphOptions graph;
  TrainOptions train;  ///< whose memory and traffic are predicted
  Widths widths;       ///< of its features and outputs
  int threads = 0;
};

void add_options(CLI::App& app, PartitionOptions& o);

}  // namespace sar::tools
