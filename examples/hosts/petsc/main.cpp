// SPDX-License-Identifier: MIT

/// PETSc solves the heat equation on its own adaptive mesh; a surrogate learns from it while it runs, and
/// then continues beside it:   mpirun -n 2 heat_petsc -out DIR
///
/// PETSc owns MPI, the mesh, its partition and the vectors; the library works as a guest. See README.md.
///
/// Room examples/hosts/petsc: A host that is a PDE library, with a surrogate on its mesh.
#include "heat.hpp"
#include "sar_petsc.hpp"
#include "surrogate.hpp"

#include <sar/core/files/file.hpp>

#include <petscsys.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

using namespace sar_petsc;

namespace {

struct Options {
  PetscInt cells = 16;          ///< squares along a side of the first mesh; each is two triangles
  PetscInt meshes = 3;          ///< the mesh is refined meshes - 1 times
  PetscInt steps = 200;         ///< solver steps on each mesh
  PetscInt horizon = 4;         ///< solver steps that a prediction covers
  PetscInt rollout_steps = 25;  ///< predictions one after the other at the end
  PetscReal share = 0.4;        ///< see refine()
  std::string out;              ///< directory of the VTU file; empty: no file
  SurrogateOptions surrogate;
  Plate plate;
};

PetscErrorCode read_options(Options& options) {
  PetscBool quick = PETSC_FALSE;
  char out[PETSC_MAX_PATH_LEN] = "";
  SurrogateOptions& net = options.surrogate;
  PetscInt hidden = net.hidden, blocks = net.blocks, train_steps = net.train_steps;
  PetscFunctionBeginUser;
  PetscOptionsBegin(PETSC_COMM_WORLD, "", "Heat with a surrogate", "");
  PetscCall(PetscOptionsBool("-quick", "small sizes: ends in seconds", "", quick, &quick, nullptr));
  if (quick) {
    options.cells = 8, options.meshes = 2, options.steps = 60, options.rollout_steps = 5;
    hidden = 16, blocks = 2;
  }
  PetscCall(PetscOptionsInt("-cells", "squares along a side", "", options.cells, &options.cells, nullptr));
  PetscCall(PetscOptionsInt("-meshes", "meshes, each finer", "", options.meshes, &options.meshes, nullptr));
  PetscCall(
      PetscOptionsInt("-steps", "solver steps on each mesh", "", options.steps, &options.steps, nullptr));
  PetscCall(PetscOptionsInt("-horizon", "solver steps of a prediction", "", options.horizon, &options.horizon,
                            nullptr));
  PetscCall(PetscOptionsInt("-rollout_steps", "predictions at the end", "", options.rollout_steps,
                            &options.rollout_steps, nullptr));
  PetscCall(PetscOptionsReal("-share", "divide cells that vary more than this share of the largest variation",
                             "", options.share, &options.share, nullptr));
  PetscCall(
      PetscOptionsReal("-dt", "time step of the solver", "", options.plate.dt, &options.plate.dt, nullptr));
  PetscCall(PetscOptionsInt("-hidden", "width of the network", "", hidden, &hidden, nullptr));
  PetscCall(PetscOptionsInt("-blocks", "message passing steps", "", blocks, &blocks, nullptr));
  PetscCall(PetscOptionsInt("-train_steps", "optimizer steps for each state", "", train_steps, &train_steps,
                            nullptr));
  PetscCall(PetscOptionsReal("-lr", "learning rate", "", net.lr, &net.lr, nullptr));
  PetscCall(
      PetscOptionsReal("-noise", "in training, in typical changes", "", net.noise, &net.noise, nullptr));
  PetscCall(PetscOptionsString("-out", "directory for the VTU file", "", out, out, sizeof out, nullptr));
  PetscOptionsEnd();
  net.hidden = static_cast<int>(hidden), net.blocks = static_cast<int>(blocks);
  net.train_steps = static_cast<int>(train_steps);
  options.out = out;
  PetscFunctionReturn(0);
}

void check_options(const Options& options) {
  const auto at_least = [](const char* name, double value, double least) {
    sar::require<sar::InputError>(value >= least, name, " ", value, ": expected at least ", least);
  };
  const auto positive = [](const char* name, double value) {
    sar::require<sar::InputError>(value > 0, name, " ", value, ": expected more than 0");
  };
  at_least("-cells", options.cells, 2);
  at_least("-meshes", options.meshes, 1);
  at_least("-steps", options.steps, 1);
  at_least("-horizon", options.horizon, 1);
  at_least("-rollout_steps", options.rollout_steps, 0);
  at_least("-hidden", options.surrogate.hidden, 1);
  at_least("-blocks", options.surrogate.blocks, 0);
  at_least("-train_steps", options.surrogate.train_steps, 1);
  at_least("-noise", options.surrogate.noise, 0);
  positive("-lr", options.surrogate.lr);
  positive("-dt", options.plate.dt);
  sar::require<sar::InputError>(options.share > 0 && options.share < 1, "-share ", options.share,
                                ": expected a number between 0 and 1");
}

double seconds() {
  return MPI_Wtime();
}

/// Joins the solver and the surrogate: makes the graph of each mesh, and trains in a monitor of the TS.
class Coupling {
 public:
  Coupling(const sar::Communicator& comm, const Options& options, Heat& heat)
      : comm_(comm), options_(options), heat_(heat), surrogate_(comm, options.surrogate) {}

  /// Runs the solver on its mesh, which is new, and trains while it runs. Collective.
  void run(int number) {
    sar::reset_peak_bytes();
    const double begin = seconds();
    attach();
    const double attached = seconds();
    const std::uint64_t steps_before = surrogate_.steps();
    train_seconds_ = 0;
    check(TSMonitorSet(heat_.ts, observe_solution, this, nullptr));
    check(advance(heat_, options_.steps));
    check(TSMonitorCancel(heat_.ts));
    const double solve_seconds = seconds() - attached - train_seconds_;

    const sar::Index nodes = comm_.all_reduce(graph_->num_nodes()),
                     edges = comm_.all_reduce(graph_->num_edges());
    const double steps = std::max<double>(1, static_cast<double>(surrogate_.steps() - steps_before));
    if (comm_.rank() != 0) return;
    std::printf("mesh %d: %lld nodes, %lld edges\n", number, static_cast<long long>(nodes),
                static_cast<long long>(edges));
    std::printf("  a step of the solver: %.3g ms, of training: %.3g ms\n",
                1e3 * solve_seconds / static_cast<double>(options_.steps), 1e3 * train_seconds_ / steps);
    std::printf("  the graph: %.3g ms, %zu kB; sar at most %zu kB on rank 0\n", 1e3 * (attached - begin),
                graph_->index_bytes() / 1000, sar::peak_bytes() / 1000);
  }

  /// Lets the surrogate continue alone from the solver's state, and writes both. Collective.
  void roll_out() {
    Vec predicted = nullptr, start = nullptr, difference = nullptr;
    for (Vec* vector : {&predicted, &start, &difference}) {
      check(VecDuplicate(heat_.u, vector));
      check(VecCopy(heat_.u, *vector));
    }
    double predict_seconds = 0;
    sar::reset_peak_bytes();
    for (PetscInt step = 1; step <= options_.rollout_steps; ++step) {
      PetscReal time = 0;
      check(TSGetTime(heat_.ts, &time));
      const double begin = seconds();
      values_->write(prediction(predicted, time), predicted);
      predict_seconds += seconds() - begin;
      check(advance(heat_, options_.horizon));
      const double error = distance(predicted, difference), nothing = distance(start, difference);
      if (comm_.rank() == 0)
        std::printf("rollout %3d  %.12g  %.12g\n", static_cast<int>(step), error, nothing);
    }
    if (comm_.rank() == 0 && options_.rollout_steps > 0)
      std::printf("  a prediction: %.3g ms; sar at most %zu kB on rank 0\n",
                  1e3 * predict_seconds / static_cast<double>(options_.rollout_steps),
                  sar::peak_bytes() / 1000);
    if (!options_.out.empty()) {
      distance(predicted, difference);
      const std::string path = options_.out + "/heat.vtu";
      check(PetscObjectSetName(reinterpret_cast<PetscObject>(predicted), "surrogate_"));
      check(PetscObjectSetName(reinterpret_cast<PetscObject>(difference), "difference_"));
      check(write_vtu(heat_, path.c_str(), {heat_.u, predicted, difference}));
      if (comm_.rank() == 0) std::printf("wrote %s\n", path.c_str());
    }
    for (Vec* vector : {&predicted, &start, &difference}) check(VecDestroy(vector));
  }

 private:
  /// Makes the graph of the solver's mesh.
  void attach() {
    mesh_ = plex_graph(heat_.dm, PlexNodes::vertices);
    graph_.emplace(comm_, mesh_.ids, sar::GlobalEdges{.src = mesh_.src, .dst = mesh_.dst},
                   sar::HostGraphOptions{.add_reverse_edges = true});
    values_.emplace(comm_, heat_.dm, mesh_);
    const std::span<const double> positions(mesh_.positions);
    surrogate_.set_mesh(*graph_, sar::Tensor::from({graph_->num_nodes(), mesh_.dim}, positions));
  }

  static PetscErrorCode observe_solution(TS, PetscInt step, PetscReal time, Vec u, void* coupling) {
    return callback([&] { static_cast<Coupling*>(coupling)->observe(step, time, u); });
  }

  void observe(PetscInt step, PetscReal time, Vec u) {
    if (step % options_.horizon != 0) return;
    check(note_variation(heat_));
    const double begin = seconds();
    const ReadRows now(*values_, u);
    const std::optional<double> loss = surrogate_.observe(now.rows(), drive(time));
    train_seconds_ += seconds() - begin;
    if (loss && comm_.rank() == 0) std::printf("time %.3f  loss %.12g\n", time, *loss), std::fflush(stdout);
  }

  sar::Tensor prediction(Vec u, PetscReal time) {
    const ReadRows now(*values_, u);
    return surrogate_.predict(now.rows(), drive(time));
  }

  /// Returns the heating at the beginning, in the middle and at the end of the next interval, [nodes, 3].
  /// Local.
  sar::Tensor drive(PetscReal time) const {
    sar::Tensor rows({std::ssize(mesh_.points), 3});
    for (sar::Index i = 0; i < rows.num_rows(); ++i)
      for (int k = 0; k < 3; ++k) {
        const PetscReal at = time + options_.plate.dt * static_cast<PetscReal>(options_.horizon) * k / 2;
        rows.row(i)[k] = static_cast<sar::real>(heating(options_.plate, at, &mesh_.positions[2 * i]));
      }
    return rows;
  }

  /// Returns the difference of a vector to the solver's, relative to the solver's, in the L2 norm.
  double distance(Vec vector, Vec difference) const {
    PetscReal error = 0, norm = 0;
    check(VecWAXPY(difference, -1, heat_.u, vector));
    check(VecNorm(difference, NORM_2, &error));
    check(VecNorm(heat_.u, NORM_2, &norm));
    return error / norm;
  }

  sar::Communicator comm_;
  const Options& options_;
  Heat& heat_;
  Surrogate surrogate_;
  PlexGraph mesh_;
  std::optional<sar::HostGraph> graph_;
  std::optional<NodeValues> values_;
  double train_seconds_ = 0;
};

void simulate() {
  Options options;
  check(read_options(options));
  check_options(options);
  const sar::Communicator comm(PETSC_COMM_WORLD);  // a duplicate: messages cannot mix with PETSc's
  const sar::ThreadLimit threads(sar::default_num_threads(comm));
  if (!options.out.empty())  // before the training, so that a failure does not waste it
    comm.agree([&] {
      std::error_code error;
      std::filesystem::create_directories(options.out, error);
      sar::require<sar::InputError>(!error, options.out, ": cannot make the directory (", error.message(),
                                    ")");
      if (comm.rank() == 0) sar::check_writable(options.out + "/heat.vtu");
    });
  Heat heat;
  check(create_heat(PETSC_COMM_WORLD, options.cells, options.plate, heat));
  Coupling coupling(comm, options, heat);
  for (int number = 0; number < options.meshes; ++number) {
    if (number > 0) check(refine(heat, options.share));
    coupling.run(number);
  }
  coupling.roll_out();
}

/// Returns 0, or 1 on an error. sar::InputError is the same on all ranks, and rank 0 prints it. A rank with
/// any other error may fail alone and aborts, because the others would wait for it.
int run() {
  try {
    simulate();
    return 0;
  } catch (const sar::InputError& error) {
    int rank = 0;
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << "heat_petsc: " << error.what() << std::endl;
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "heat_petsc: " << error.what() << std::endl;
    MPI_Abort(PETSC_COMM_WORLD, 1);
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // PETSc initializes MPI at the level MPI_THREAD_FUNNELED, which sar needs
  if (PetscInitialize(&argc, &argv, nullptr,
                      "Heat on an adaptive mesh with a surrogate that learns meanwhile\n") != 0)
    return 1;
  PetscPushErrorHandler(PetscReturnErrorHandler, nullptr);  // errors are exceptions, and printed in run()
  const int code = run();
  PetscPopErrorHandler();
  return PetscFinalize() == 0 ? code : 1;
}
