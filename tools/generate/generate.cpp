// SPDX-License-Identifier: MIT

/// Writes a generated graph as a dataset directory, for programs that read files:
///     mpirun -n 2 generate --nodes 2000000 --degree 30 --out sbm
///
/// Room tools/generate: The program `generate`.
#include "formats/open_source.hpp"
#include "generate_options.hpp"
#include "heartbeat.hpp"
#include "program.hpp"

#include <sar/data.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

namespace sar::tools {
namespace {

/// Throws InputError when the directory cannot hold the files. Collective.
void require_space(const Communicator& comm, const GenerateOptions& o) {
  comm.agree([&] {
    if (comm.rank() != 0) return;
    const auto nodes = static_cast<double>(o.sbm.nodes);
    const double bytes =
        nodes * (static_cast<double>(o.sbm.features) * sizeof(real) + 11 + 16 * o.sbm.degree);
    const std::string parent = std::filesystem::path(o.out).parent_path().string();
    std::error_code unknown;
    const auto space = std::filesystem::space(parent.empty() ? "." : parent, unknown);
    require<InputError>(unknown || bytes <= static_cast<double>(space.available), o.out,
                        ": a graph of --nodes ", o.sbm.nodes, ", --degree ", o.sbm.degree, " and --features ",
                        o.sbm.features, " needs ", std::ceil(bytes / 1e9), " GB, expected less than the ",
                        static_cast<double>(space.available) / 1e9, " GB that are free there");
  });
}

/// Writes the graph that the options describe. Collective.
void generate(const Communicator& comm, const GenerateOptions& o) {
  if (o.words.empty()) require_space(comm, o);
  Heartbeat heartbeat(comm.rank() == 0 ? &std::cout : nullptr);
  heartbeat.phase("writing " + printable(o.out));
  std::unique_ptr<GraphSource> given, source;
  if (!o.words.empty()) {
    given = formats::open_source(comm, o.words);
    source = words_source(*given);
  } else {
    source = sbm_source(comm, o.sbm);
  }
  write_dataset(*source, o.out);
  say(comm, o.out, ": ", source->description());
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  return sar::tools::run<sar::tools::GenerateOptions>("Writes a generated graph as a dataset directory.",
                                                      "generate", argc, argv, sar::tools::generate);
}
