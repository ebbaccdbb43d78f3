// SPDX-License-Identifier: MIT

/// The losses of a small training, one a line, by the classes of sar_cxx11.hpp. losses.c is the same program
/// in C.
#include <sar_cxx11.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

const int num_nodes = 60, num_steps = 20;

void train() {
  const sar_cxx11::Comm comm(MPI_COMM_WORLD);
  const int rank = comm.rank(), size = comm.size();
  std::vector<std::int64_t> ids, src, dst;
  std::vector<double> x, target;
  for (std::int64_t i = rank * num_nodes / size; i < (rank + 1) * num_nodes / size; ++i) {
    ids.push_back(i);
    src.push_back((i + num_nodes - 1) % num_nodes);
    src.push_back((i + 7) % num_nodes);
    dst.insert(dst.end(), 2, i);
    x.push_back(static_cast<double>(7 * i % 11) / 10);
    x.push_back(static_cast<double>(5 * i % 13) / 10);
    target.push_back(static_cast<double>(7 * (i + num_nodes - 1) % 11) / 20);
  }

  const sar_cxx11::Graph graph(comm, ids, src, dst);
  sar_cxx11::Model model(
      comm, R"({"sar_model": 1, "type": "sage", "in_feats": 2, "hidden": 8, "out_feats": 1, "layers": 2})",
      5);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "adam", "lr": 0.01})");
  for (int step = 0; step < num_steps; ++step) {
    const double loss =
        model.train_step(optimizer, graph, sar_cxx11::array(x, 2), sar_cxx11::array(target, 1));
    if (rank == 0) std::printf("%.16e\n", loss);
  }
}

}  // namespace

int main() {
  try {
    sar_cxx11::check(sar_init());
    train();
    sar_cxx11::check(sar_finalize());
  } catch (const sar_cxx11::Error& error) {
    std::fprintf(stderr, "losses: %s\n", error.what());
    return 1;
  }
}
