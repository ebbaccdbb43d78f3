// SPDX-License-Identifier: MIT

/// Command line options.
#pragma once

#include "mesh.hpp"
#include "surrogate.hpp"

#include <optional>
#include <string>

struct Options {
  MeshOptions mesh;
  SurrogateOptions surrogate;
  int runs = 8;            ///< simulation runs, each from another state
  int run_steps = 30;      ///< time steps of the surrogate per run
  int solver_steps = 4;    ///< solver steps per time step of the surrogate
  int train_steps = 4;     ///< optimizer steps after each of these time steps
  int history = 60;        ///< number of recent time steps that training draws from
  int rollout_steps = 20;  ///< steps of the surrogate alone, from an unseen state
  std::string out;         ///< output directory; empty: no files
};

/// Fills `options`. Returns an exit code if the program should end: 0 after --help, 2 for wrong usage. Rank 0
/// prints the reason.
std::optional<int> parse(int argc, char** argv, int rank, Options& options);
