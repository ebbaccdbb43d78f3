/// Writes a generated graph as a dataset directory, for programs that read files:
///     mpirun -n 2 generate --nodes 2000000 --degree 30 --out sbm
#include <sar/graph/data/write_dataset.hpp>
#include <sar/sar.hpp>

#include "parse.hpp"
#include "run.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace sar;

namespace {

int generate(const Communicator& comm, int argc, char** argv) {
  SbmOptions sbm;
  std::string out;

  CLI::App app("Writes a generated graph (sbm) as a dataset directory.", "generate");
  app.option_defaults()->always_capture_default();
  app.add_option("--nodes", sbm.nodes, "number of nodes")->check(CLI::PositiveNumber);
  app.add_option("--degree", sbm.degree, "average in-degree")->check(CLI::PositiveNumber);
  app.add_option("--classes", sbm.classes, "number of classes")->check(CLI::PositiveNumber);
  app.add_option("--features", sbm.features, "width of the features")->check(CLI::PositiveNumber);
  app.add_option("--homophily", sbm.homophily, "share of edges inside a class")->check(CLI::Range(0.0, 1.0));
  app.add_option("--train-share", sbm.train_share, "share of the training nodes")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", sbm.seed, "of everything random");
  app.add_option("--out", out, "the directory to make")->required();
  if (const auto exit_code = examples::parse(app, argc, argv, comm)) return *exit_code;

  const auto source = sbm_source(comm, sbm);
  write_dataset(*source, out);
  if (comm.rank() == 0) std::cout << out << ": " << source->description() << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("generate", [&](const Communicator& comm) { return generate(comm, argc, argv); });
}
