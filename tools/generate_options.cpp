#include "generate_options.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

namespace sar::tools {

void add_options(CLI::App& app, GenerateOptions& o) {
  app.option_defaults()->always_capture_default();
  add_sbm_options(app, o.sbm);
  add_seed_option(app, o.sbm.seed, "of everything random");
  const auto types =
      app.add_flag("--types", o.types,
                   "papers, authors and fields with six relations; --nodes counts the papers, --degree "
                   "all edges for each of them");
  app.add_option("--words", o.words,
                 "the papers and words of a dataset whose features are words, such as Cora")
      ->check(not_empty())
      ->excludes(types)
      ->option_text("DATASET");
  app.add_option("--out", o.out, "the directory to make")->required()->check(not_empty());
}

}  // namespace sar::tools
