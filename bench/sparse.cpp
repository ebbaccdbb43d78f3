// SPDX-License-Identifier: MIT

/// Sparse features beside dense ones.
///
///     bench_sparse [n k density m]             the first layer, Y = X W and dW = X^T dY, for X [n, k]
///     bench_sparse graph [n k density m]       a two-layer GCN on a generated graph, one epoch a line;
///                                              also under mpirun
///
/// Defaults: the sizes of Citeseer, 3327 x 3703 with 0.85 % set, 64 wide; the graph 200000 x 8000, 1 % set.
#include "bench.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace sar::bench {
namespace {

struct Sizes {
  Index n, k;
  double density;
  Index m;
};

/// Rows with about density k values of 1 in random columns; the columns of a row depend on its id alone.
Variable bags_of_words(std::span<const Index> ids, Index k, double density) {
  const Random random({7, 8, 9});
  const auto step = 2 / density - 1;  // the mean distance of columns is 1 / density
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  for (const Index id : ids) {
    std::uint64_t draw = 0;
    const auto next = [&](double column) {
      return column + 1 + (step - 1) * random.uniform(static_cast<std::uint64_t>(id), draw++);
    };
    for (double column = next(-1); column < static_cast<double>(k); column = next(column))
      columns.push_back(static_cast<std::int32_t>(column));
    offsets.push_back(std::ssize(columns));
  }
  return sparse_variable(k, offsets, columns, std::vector<real>(columns.size(), 1));
}

/// One training step of the first layer.
void step(const Variable& x, const Variable& w, const Tensor& g) {
  Variable weight = w;
  const Tape tape;
  Tape::current()->backward(affine(x, weight), g);
  weight.zero_grad();
}

void print_memory(const std::string& name, std::size_t bytes) {
  std::cout << R"({"name":")" << name << R"(","megabytes":)" << static_cast<double>(bytes) / 1e6 << "}\n";
}

void run_layer(const Sizes& s) {
  std::vector<Index> ids(static_cast<std::size_t>(s.n));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Index>(i);
  const Variable w(Tensor::full({s.k, s.m}, real(0.5)), true);
  const Tensor g = Tensor::full({s.n, s.m}, real(0.25));
  const std::string size = std::to_string(s.n) + "x" + std::to_string(s.k) + "x" + std::to_string(s.m);

  reset_peak_bytes();
  const std::size_t before = live_bytes();
  const Variable sparse = bags_of_words(ids, s.k, s.density);
  const auto [of_sparse] = best_seconds(9, [&] { step(sparse, w, g); });
  print_memory("sparse first layer " + size, peak_bytes() - before);

  const Tensor dense = Variable(sparse).value();
  reset_peak_bytes();
  const std::size_t with_dense = live_bytes() - dense.bytes();
  const auto [of_dense, again] = best_seconds(
      5, [&] { step(dense, w, g); }, [&] { step(sparse, w, g); });
  print_memory("dense first layer " + size, peak_bytes() - with_dense);
  const double operations = 4e-9 * static_cast<double>(sparse_matrix(sparse)->num_stored() * s.m);
  print({.name = "sparse first layer " + size,
         .seconds = std::min(of_sparse, again),
         .rate = operations / std::min(of_sparse, again),
         .unit = "GFLOP/s",
         .reference = operations / of_dense});
}

void run_graph(const Sizes& s) {
  const Communicator comm = Communicator::world();
  NodeData data = make_sbm(comm, {.nodes = s.n, .degree = 10, .classes = 16, .features = 1});
  const Variable x = bags_of_words(data.original_ids, s.k, s.density);
  data.features = {};
  const Graph graph = construct_full_graph(comm, data);
  Generator gen(0);
  GraphModel model(
      {.type = "gcn", .in_feats = s.k, .hidden = s.m, .out_feats = 16, .layers = 2, .dropout = 0.5}, comm,
      gen);
  Adam optimizer(model.named_parameters(), {.lr = 0.01});
  for (int epoch = 0; epoch < 5; ++epoch) {
    comm.barrier();
    reset_peak_bytes();
    const double seconds = seconds_of([&] {
      Tape tape;
      tape.backward(cross_entropy(model(graph, x), data.labels, data.train_mask, comm));
      gather_grads(comm, model);
      optimizer.step();
      optimizer.zero_grad();
    });
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    if (comm.rank() != 0) continue;
    print({.name = "gcn epoch " + std::to_string(epoch),
           .ranks = comm.size(),
           .seconds = seconds,
           .rate = static_cast<double>(s.n) / seconds / 1e6,
           .unit = "Mnodes/s"});
    print_memory("tensors of a rank", peak_bytes());
    print_memory("resident memory of a rank", static_cast<std::size_t>(usage.ru_maxrss) * 1024);
  }
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  using namespace sar::bench;
  const bool graph = argc > 1 && std::string(argv[1]) == "graph";
  const int first = graph ? 2 : 1;
  Sizes sizes = graph ? Sizes{200000, 8000, 0.01, 64} : Sizes{3327, 3703, 0.0085, 64};
  if (argc >= first + 4)
    sizes = {std::atoll(argv[first]), std::atoll(argv[first + 1]), std::atof(argv[first + 2]),
             std::atoll(argv[first + 3])};
  const sar::Environment environment(argc, argv);
  graph ? run_graph(sizes) : run_layer(sizes);
}
