// SPDX-License-Identifier: MIT

/// What it costs to train inside a simulation: training steps of the network of examples/mesh_surrogate,
/// (a) as the simulation makes them, from its arrays on a graph made of its mesh, and (b) as a training
/// program makes them, on the same graph from a dataset, with features and targets ready. Steps alternate;
/// both must have the same losses.
///
/// in_situ_step: steps/s of (a), beside those of (b); the ratio is the median over pairs of steps, at least
/// 0.98 is good.
///
/// bench_in_situ [mesh columns] [mesh rows] [steps]
#include "bench.hpp"

#include "../examples/mesh_surrogate/mesh.hpp"
#include "../examples/mesh_surrogate/solver.hpp"
#include "../examples/mesh_surrogate/surrogate.hpp"

#include <mpi.h>

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace sar;

namespace {

/// The mesh as a dataset: nodes on the same ranks in the same order, numbered rank by rank.
NodeData dataset_of(const PartitionBook& book, int rank, const Mesh& mesh, const Solver& solver) {
  NodeData data;
  data.name = "mesh";
  data.book = book;
  std::vector<double> number(static_cast<std::size_t>(mesh.num_nodes()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(mesh.num_owned); ++i) {
    number[i] = static_cast<double>(book.begin(rank) + static_cast<Index>(i));
    data.original_ids.push_back(mesh.global_id[i]);
  }
  solver.update_ghosts(number);
  const DirectedEdges edges = directed_edges(mesh);
  for (std::size_t e = 0; e < edges.from.size(); ++e) {
    const auto u = static_cast<Index>(number[static_cast<std::size_t>(edges.from[e])]);
    const auto v = static_cast<Index>(number[static_cast<std::size_t>(edges.to[e])]);
    data.edges.src.push_back(u);
    data.edges.dst.push_back(v);
    data.edges.id.push_back(v * book.num_nodes() + u);
  }
  return data;
}

class Training {
 public:
  Training(const Communicator& comm, const Mesh& mesh, const Solver& solver, const SurrogateOptions& options,
           const TimeStep& step)
      : host_graph_(make_graph(comm, mesh)),
        data_(dataset_of(host_graph_.book(), comm.rank(), mesh, solver)),
        graph_(construct_full_graph(comm, data_)),
        edges_(host_graph_.to_graph_order(edge_features(comm, mesh))),
        target_({mesh.num_owned, 1}),
        generator_(options.seed),
        network_(network_options(options), generator_),
        adam_(network_.named_parameters(), {.lr = options.lr}) {
    Tensor field({mesh.num_owned, 1});
    for (Index i = 0; i < mesh.num_owned; ++i) {
      const auto node = static_cast<std::size_t>(i);
      *field.row(i) = static_cast<real>(step.before[node]);
      *target_.row(i) = static_cast<real>(step.after[node] - step.before[node]);
    }
    nodes_ = concat_columns({Variable(field), Variable(node_features(comm, mesh))}).value();
  }

  double step() {
    Tape tape;
    const Variable loss = mse(network_(graph_, nodes_, edges_), target_, graph_.comm());
    tape.backward(loss);
    gather_grads(graph_.comm(), network_);
    adam_.step();
    adam_.zero_grad();
    return static_cast<double>(loss.value().item());
  }

 private:
  HostGraph host_graph_;  // for the book and the order of edges, which are the same
  NodeData data_;
  Graph graph_;
  Tensor nodes_, edges_, target_;
  Generator generator_;
  MeshGraphNet network_;
  Adam adam_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const ThreadLimit threads(default_num_threads(comm));
  const MeshOptions size{.columns = argc > 1 ? std::atoi(argv[1]) : 200,
                         .rows = argc > 2 ? std::atoi(argv[2]) : 100};
  const int steps = argc > 3 ? std::max(1, std::atoi(argv[3])) : 40;
  const Mesh mesh = make_mesh(size, comm.rank(), comm.size());
  Solver solver(MPI_COMM_WORLD, mesh);
  solver.start(1);
  TimeStep step{.before = {solver.field().begin(), solver.field().end()}, .after = {}};
  solver.advance(4);
  step.after.assign(solver.field().begin(), solver.field().end());

  const SurrogateOptions options{.noise = 0};
  Surrogate in_situ(comm, mesh, options);
  Training dataset(comm, mesh, solver, options, step);
  std::vector<double> seconds, ratios;  // of (a); of each (a) to the (b) beside it
  for (int s = 0; s <= steps; ++s) {
    std::array<double, 2> times{}, losses{};
    for (const int turn : {0, 1}) {
      const bool inside = (turn + s) % 2 == 0;
      comm.barrier();
      const double mine =
          bench::seconds_of([&] { losses[inside ? 0 : 1] = inside ? in_situ.train(step) : dataset.step(); });
      times[inside ? 0 : 1] = comm.all_reduce(mine, ReduceOp::max);
    }
    if (std::abs(losses[0] - losses[1]) > 1e-3 * losses[1]) {
      if (comm.rank() == 0) std::fprintf(stderr, "step %d: losses %g and %g\n", s, losses[0], losses[1]);
      return 1;
    }
    if (s == 0) continue;
    seconds.push_back(times[0]);
    ratios.push_back(times[0] / times[1]);
  }
  if (comm.rank() != 0) return 0;
  const double time = median(seconds);
  bench::print({.name = "in_situ_step",
                .ranks = comm.size(),
                .seconds = time,
                .rate = 1 / time,
                .unit = "steps/s",
                .reference = median(ratios) / time});
  return 0;
}
