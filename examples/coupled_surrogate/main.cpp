// SPDX-License-Identifier: MIT

/// Two coupled simulations that train a surrogate of both while they run:   mpirun -n 2 coupled_surrogate
///
/// The simulation owns MPI, the meshes, their partition and the arrays; the library works as a guest. See
/// README.md.
///
/// Room examples/coupled_surrogate: Two coupled simulations with one surrogate.
#include "surrogate.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

namespace {

struct Options {
  MeshOptions mesh;
  SurrogateOptions surrogate;
  int runs = 12;         ///< simulation runs, each from another state
  int run_steps = 25;    ///< time steps of the surrogate per run
  int solver_steps = 4;  ///< solver steps per time step of the surrogate
  int train_steps = 8;   ///< optimizer steps after each of these time steps
  int rollout_steps = 10;
};

/// Runs the simulation. After each time step of the solver, the surrogate trains on some of the previous
/// ones.
void run_and_train(Solver& solver, Surrogate& surrogate, const Options& options, bool print) {
  std::vector<TimeStep> history;
  const sar::Random random({.seed = options.surrogate.seed, .stream = 2});  // the same draws on every rank
  std::uint64_t draws = 0;
  const int trained_runs = options.runs - 1;
  for (int run = 0; run < options.runs; ++run) {
    solver.start(static_cast<std::uint64_t>(run + 1));
    // cosine decay to 0
    surrogate.set_lr(options.surrogate.lr * 0.5 *
                     (1 + std::cos((run - 1) * 3.14159265358979 / trained_runs)));
    double loss = 0;
    for (int step = 0; step < options.run_steps; ++step) {
      TimeStep now{.before = solver.temperature(), .after = {}, .heating = solver.heating()};
      solver.advance(options.solver_steps);
      now.after = solver.temperature();
      history.push_back(std::move(now));
      if (run == 0) continue;  // the first run only collects
      for (int k = 0; k < options.train_steps; ++k)
        loss += surrogate.train(history[random.bits(draws++) % history.size()]) /
                (options.train_steps * options.run_steps);
    }
    if (run == 0) surrogate.set_scales(history);
    if (run > 0 && print) std::printf("run %2d  loss %.12g\n", run, loss), std::fflush(stdout);
    sar::require<sar::InputError>(std::isfinite(loss), "run ", run, ": the loss is ", loss,
                                  ", expected a number: try a smaller --lr than ", options.surrogate.lr);
  }
}

/// Returns sqrt(sum (u - truth)^2 / sum truth^2) over this mesh's nodes of all ranks.
double relative_error(MPI_Comm comm, const Mesh& mesh, const std::vector<double>& u,
                      const std::vector<double>& truth) {
  std::array<double, 2> sums{};
  for (const std::int64_t v : mesh.owned) {
    sums[0] += (u[v] - truth[v]) * (u[v] - truth[v]);
    sums[1] += truth[v] * truth[v];
  }
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_DOUBLE, MPI_SUM, comm);
  return std::sqrt(sums[0] / sums[1]);
}

/// Runs the surrogate alone from an unseen state, with the solver as reference.
void roll_out(MPI_Comm comm, const Meshes& meshes, Solver& solver, const Surrogate& surrogate,
              const Options& options, bool print) {
  solver.start(123456789);
  const Fields start = solver.temperature();
  Fields predicted = start;
  if (print) std::printf("rollout  relative L2 error in the fluid and the plate; where nothing changes\n");
  for (int step = 1; step <= options.rollout_steps; ++step) {
    surrogate.predict(predicted, solver.heating());
    solver.advance(options.solver_steps);
    if (print) std::printf("rollout %2d", step);
    for (const Fields& each : {predicted, start})
      for (const Body body : {fluid, plate}) {
        const double error = relative_error(comm, meshes.mesh[body], each[body], solver.temperature()[body]);
        if (print) std::printf("  %.12g", error);
      }
    if (print) std::printf("\n");
  }
}

/// Returns 0, or 1 on an error. If all ranks throw the same error, rank 0 prints it.
int simulate(MPI_Comm comm, int rank, const Options& options) {
  try {
    int num_ranks = 1;
    MPI_Comm_size(comm, &num_ranks);
    const Meshes meshes = make_meshes(options.mesh, rank, num_ranks);
    Solver solver(comm, meshes);
    const sar::Communicator guest(comm);  // a duplicate: messages cannot mix with the solver's
    const sar::ThreadLimit threads(sar::default_num_threads(guest));
    Surrogate surrogate(guest, meshes, options.surrogate);
    if (rank == 0)
      std::printf("%d nodes of the fluid and %d of the plate on %d ranks\n", meshes.mesh[fluid].num_nodes(),
                  meshes.mesh[plate].num_nodes(), num_ranks);
    run_and_train(solver, surrogate, options, rank == 0);
    roll_out(comm, meshes, solver, surrogate, options, rank == 0);
    return 0;
  } catch (const sar::InputError& error) {
    if (rank == 0) std::cerr << "coupled_surrogate: " << error.what() << std::endl;
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "coupled_surrogate: rank " << rank << ": " << error.what() << std::endl;
    MPI_Abort(comm, 1);  // other ranks would wait in MPI_Finalize
    return 1;
  }
}

/// Parses the command line. Returns an exit code if the program should end.
std::optional<int> parse(int argc, char** argv, int rank, Options& options) {
  CLI::App app("Heat in a fluid and in the plate below it, with a surrogate that learns from the solver.");
  bool quick = false;
  app.add_option("--runs", options.runs, "runs of the simulation, of which the first only collects")
      ->check(CLI::Range(2, 1000));
  app.add_option("--rounds", options.surrogate.rounds, "rounds of message passing")->check(CLI::Range(1, 20));
  app.add_option("--hidden", options.surrogate.hidden, "width of the network")->check(CLI::Range(1, 1024));
  app.add_option("--lr", options.surrogate.lr, "learning rate of Adam")->check(CLI::PositiveNumber);
  app.add_flag("--quick", quick, "smaller meshes and fewer runs: ends in seconds");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (rank != 0) return error.get_exit_code() == 0 ? 0 : 2;
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (quick) {
    options.mesh = {.fluid_columns = 13, .fluid_rows = 6, .plate_columns = 9, .plate_rows = 3};
    options.runs = 8;
    options.run_steps = 16;
    options.rollout_steps = 4;
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);  // the library's threads never call MPI
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Options options;
  std::optional<int> code = parse(argc, argv, rank, options);
  if (!code) code = simulate(MPI_COMM_WORLD, rank, options);
  MPI_Finalize();
  return *code;
}
