/// Writes a generated graph as a dataset directory, for programs that read files:
///     mpirun -n 2 generate --nodes 2000000 --degree 30 --out sbm
#include "generate_options.hpp"
#include "program.hpp"

#include <sar/graph/data/write_dataset.hpp>
#include <sar/sar.hpp>

#include <iostream>

using namespace sar;

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  CLI::App app("Writes a generated graph (sbm) as a dataset directory.", "generate");
  tools::GenerateOptions options;
  add_options(app, options);
  return tools::run(app, argc, argv, [&](const Communicator& comm) {
    const auto source = sbm_source(comm, options.sbm);
    write_dataset(*source, options.out);
    if (comm.rank() == 0) std::cout << options.out << ": " << source->description() << std::endl;
  });
}
