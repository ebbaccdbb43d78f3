// SPDX-License-Identifier: MIT
#include "generate_options.hpp"

#include "options.hpp"

namespace sar::tools {

void add_options(CLI::App& app, GenerateOptions& o) {
  begin_group(app, "Graph");
  add_sbm_options(app, o.sbm);
  add_number(app, "--seed", o.sbm.seed, "seed of the graph");
  add_path(app, "--words", o.words, "DATASET",
           "typed graph of papers and words, from a dataset whose features are words (Cora)");
  begin_group(app, "Output");
  add_path(app, "--out", o.out, "DIR", "dataset directory to write")->required();
  set_common_options(app, {"--nodes", "--degree", "--classes", "--features", "--seed", "--words", "--out"});
}

}  // namespace sar::tools
