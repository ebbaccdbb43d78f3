// SPDX-License-Identifier: MIT

/// A simulation that trains its own surrogate while it runs:   mpirun -n 2 mesh_surrogate
///
/// The simulation owns MPI, the mesh, its partition and the arrays; the library works as a guest. See
/// README.md.
///
/// Room examples/mesh_surrogate: A simulation on a mesh with a surrogate.
#include "mesh.hpp"
#include "options.hpp"
#include "picture.hpp"
#include "solver.hpp"
#include "surrogate.hpp"
#include "vtk.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <mpi.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <span>
#include <vector>

namespace {

std::vector<double> copy(std::span<const double> values) {
  return {values.begin(), values.end()};
}

/// Returns sqrt(sum (u - truth)^2 / sum truth^2) over the nodes of all ranks.
double relative_error(MPI_Comm comm, int num_owned, std::span<const double> u,
                      std::span<const double> truth) {
  std::array<double, 2> sums{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_owned); ++i) {
    sums[0] += (u[i] - truth[i]) * (u[i] - truth[i]);
    sums[1] += truth[i] * truth[i];
  }
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_DOUBLE, MPI_SUM, comm);
  return std::sqrt(sums[0] / sums[1]);
}

/// Runs the simulation; after each time step the surrogate trains on the last ones.
void run_and_train(Solver& solver, Surrogate& surrogate, const Options& options, bool print) {
  std::vector<TimeStep> history;
  const int num_steps = options.runs * options.run_steps;
  const int first_trained = std::min(options.history, num_steps) - 1;  // until then it only collects
  std::uint64_t draws = 0;
  for (int step = 0; step < num_steps; ++step) {
    if (step % options.run_steps == 0) solver.start(static_cast<std::uint64_t>(step / options.run_steps));
    TimeStep now{.before = copy(solver.field()), .after = {}};
    solver.advance(options.solver_steps);
    now.after = copy(solver.field());
    if (std::ssize(history) < options.history)
      history.push_back(std::move(now));
    else
      history[step % options.history] = std::move(now);

    if (step < first_trained) continue;
    if (step == first_trained) surrogate.set_scales(history);
    // cosine decay to 0
    const double progress = static_cast<double>(step - first_trained) / (num_steps - first_trained);
    surrogate.set_lr(options.surrogate.lr * 0.5 * (1 + std::cos(progress * 3.14159265358979)));
    const sar::Random random({.seed = options.surrogate.seed, .stream = 2});  // the same draws on every rank
    double loss = 0;
    for (int k = 0; k < options.train_steps; ++k)
      loss += surrogate.train(history[random.bits(draws++) % history.size()]) / options.train_steps;
    if (print) std::printf("step %4d  loss %.12g\n", step + 1, loss), std::fflush(stdout);
    sar::require<sar::InputError>(std::isfinite(loss), "step ", step + 1, ": the loss is ", loss,
                                  ", expected a number: try a smaller --lr than ", options.surrogate.lr);
  }
}

/// Runs the surrogate alone from an unseen state, with the solver as reference.
void roll_out(MPI_Comm comm, const sar::Communicator& guest, const Mesh& mesh, Solver& solver,
              const Surrogate& surrogate, VtkSeries* files, const Options& options, bool print) {
  solver.start(/*seed=*/123456789);
  const std::vector<double> start = copy(solver.field());
  std::vector<double> predicted = start, error(start.size());
  if (print)
    std::printf("rollout  relative L2 error of the surrogate, and of the assumption that nothing changes\n");

  for (int step = 0; step <= options.rollout_steps; ++step) {
    if (step > 0) {
      surrogate.predict(predicted);
      solver.advance(options.solver_steps);
      solver.update_ghosts(predicted);
      const double mine = relative_error(comm, mesh.num_owned, predicted, solver.field());
      const double baseline = relative_error(comm, mesh.num_owned, start, solver.field());
      if (print) std::printf("rollout %3d  %.12g  %.12g\n", step, mine, baseline);
    }
    if (files == nullptr) continue;
    for (std::size_t i = 0; i < error.size(); ++i) error[i] = predicted[i] - solver.field()[i];
    files->write(
        step * options.solver_steps * solver.dt(),
        std::array<NodeField, 3>{{{"truth", solver.field()}, {"prediction", predicted}, {"error", error}}});
  }
  if (files == nullptr) return;
  const std::string picture = draw(
      comm, mesh,
      std::array<Panel, 3>{
          {{"solver", solver.field()}, {"surrogate", predicted}, {"difference", error, -0.2, 0.2, true}}});
  const std::string path = options.out + "/rollout.svg";
  guest.agree([&] {
    if (guest.rank() == 0) sar::write_text(path, picture);
  });
  if (print) std::printf("wrote %s and %s\n", files->path().c_str(), path.c_str());
}

void simulate(MPI_Comm comm, int rank, const Options& options) {
  int num_ranks = 1;
  MPI_Comm_size(comm, &num_ranks);
  const Mesh mesh = make_mesh(options.mesh, rank, num_ranks);
  Solver solver(comm, mesh);

  const sar::Communicator guest(comm);  // a duplicate: messages cannot mix with the solver's
  const sar::ThreadLimit threads(sar::default_num_threads(guest));
  Surrogate surrogate(guest, mesh, options.surrogate);
  std::optional<VtkSeries> files;  // opened before the training, so that a failure does not waste it
  if (!options.out.empty()) files.emplace(guest, mesh, options.out, "rollout");
  if (rank == 0)
    std::printf("%d nodes on %d ranks; the surrogate's time step is %d of the solver's, %.4g\n",
                options.mesh.columns * options.mesh.rows, num_ranks, options.solver_steps,
                options.solver_steps * solver.dt());
  run_and_train(solver, surrogate, options, rank == 0);
  roll_out(comm, guest, mesh, solver, surrogate, files ? &*files : nullptr, options, rank == 0);
}

/// Returns 0, or 1 on an error. If all ranks throw the same error, rank 0 prints it. A rank that runs out of
/// memory or loses its connection fails alone and aborts, because the other ranks would wait in MPI_Finalize.
int run(MPI_Comm comm, int rank, const Options& options) {
  try {
    simulate(comm, rank, options);
    return 0;
  } catch (const sar::InputError& error) {
    if (rank == 0) std::cerr << "mesh_surrogate: " << error.what() << std::endl;
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "mesh_surrogate: rank " << rank << ": " << error.what() << std::endl;
    MPI_Abort(comm, 1);
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);  // the library's threads never call MPI
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Options options;
  std::optional<int> code = parse(argc, argv, rank, options);
  if (!code) code = run(MPI_COMM_WORLD, rank, options);
  MPI_Finalize();
  return *code;
}
