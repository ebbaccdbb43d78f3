/// The command line.
#pragma once

#include "mesh.hpp"
#include "surrogate.hpp"

#include <optional>
#include <string>

struct Options {
  MeshOptions mesh;
  SurrogateOptions surrogate;
  int runs = 8;            ///< of the simulation, each from another state
  int run_steps = 30;      ///< time steps of the surrogate in a run
  int solver_steps = 4;    ///< of the solver, in a time step of the surrogate
  int train_steps = 4;     ///< of the optimizer, after each of these time steps
  int history = 60;        ///< the last so many time steps are those that the training draws from
  int rollout_steps = 20;  ///< of the surrogate alone, from a state that it has not seen
  std::string out;         ///< directory of the files; empty: none
};

/// Fills `options`. An exit code when the program should end here: 0 after --help, 2 for wrong usage. Rank 0
/// says why.
std::optional<int> parse(int argc, char** argv, int rank, Options& options);
