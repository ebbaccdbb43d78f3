// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <sstream>
#include <string_view>

namespace {

Options small_sizes() {
  Options options;
  options.mesh = {.columns = 24, .rows = 12};
  options.surrogate.blocks = 2;
  options.surrogate.hidden = 16;
  options.runs = 3;
  options.run_steps = 10;
  options.train_steps = 12;
  options.surrogate.lr = 6e-3;
  options.surrogate.noise = 0.05;  // a short training learns less from more noise
  options.history = 10;
  options.rollout_steps = 5;
  return options;
}

}  // namespace

std::optional<int> parse(int argc, char** argv, int rank, Options& options) {
  CLI::App app("A simulation of advection and diffusion that trains its own surrogate while it runs");
  bool quick = false;
  app.add_flag("--quick", quick, "small sizes, for a few seconds; other options change them");
  for (int i = 1; i < argc; ++i)
    if (argv[i] == std::string_view("--quick")) options = small_sizes();

  const auto count = [&](const char* name, int& value, int least, const char* what) {
    app.add_option(name, value, what)->check(CLI::Range(least, 1 << 14))->capture_default_str();
  };
  count("--columns", options.mesh.columns, 2, "points of the mesh along its length");
  count("--rows", options.mesh.rows, 2, "points of the mesh along its height");
  count("--runs", options.runs, 1, "runs of the simulation, each from another state");
  count("--run-steps", options.run_steps, 1, "time steps of the surrogate in a run");
  count("--solver-steps", options.solver_steps, 1, "steps of the solver in a time step of the surrogate");
  count("--train-steps", options.train_steps, 1, "steps of the optimizer after each time step");
  count("--history", options.history, 1, "the last so many time steps are what the training draws from");
  count("--rollout-steps", options.rollout_steps, 1, "time steps of the surrogate alone, after the training");
  count("--blocks", options.surrogate.blocks, 1, "blocks of message passing");
  count("--hidden", options.surrogate.hidden, 1, "width of the network");
  app.add_option("--lr", options.surrogate.lr, "learning rate at the beginning")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--noise", options.surrogate.noise,
                 "on the input in training, in units of the typical change")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.surrogate.seed, "of parameters and noise")->capture_default_str();
  app.add_flag("--mixed-precision", options.surrogate.mixed_precision,
               "training steps with activations and gradients in bfloat16");
  app.add_option("--out", options.out, "directory for rollout.pvd, which ParaView opens, and rollout.svg");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    if (rank == 0) std::cout << out.str() << std::flush, std::cerr << err.str() << std::flush;
    return code == 0 ? 0 : 2;
  }
  return std::nullopt;
}
