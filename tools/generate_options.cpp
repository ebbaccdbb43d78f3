#include "generate_options.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

namespace sar::tools {

void add_options(CLI::App& app, GenerateOptions& o) {
  app.option_defaults()->always_capture_default();
  add_sbm_options(app, o.sbm);
  add_seed_option(app, o.sbm.seed, "of everything random");
  app.add_option("--out", o.out, "the directory to make")->required()->check(not_empty());
}

}  // namespace sar::tools
