// SPDX-License-Identifier: MIT

/// The losses of small trainings on a graph with node and edge types, one a line, by the classes of
/// sar_cxx11.hpp. typed_losses.c is the same program in C.
#include <sar_cxx11.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

const int num_fluid = 30, num_solid = 12, num_steps = 5;

/// Nodes of this rank.
std::vector<std::int64_t> own_nodes(const sar_cxx11::Comm& comm, int nodes) {
  std::vector<std::int64_t> own;
  for (int i = comm.rank() * nodes / comm.size(); i < (comm.rank() + 1) * nodes / comm.size(); ++i)
    own.push_back(i);
  return own;
}

sar_cxx11::Graph make_graph(const sar_cxx11::Comm& comm, bool has_weights) {
  std::vector<std::int64_t> fluid, src, dst, from, to;
  std::vector<double> weight;
  for (const std::int64_t i : own_nodes(comm, num_fluid)) {
    fluid.push_back(100 + i);
    src.push_back(100 + (i + num_fluid - 1) % num_fluid);
    src.push_back(100 + (i + 7) % num_fluid);
    dst.insert(dst.end(), 2, 100 + i);
    from.push_back(5 * i % num_solid);
    to.push_back(100 + i);
    weight.push_back(static_cast<double>(1 + i % 4) / 4);
  }
  const sar_array weights = sar_cxx11::array(weight, 1);
  sar_cxx11::Graph graph(comm);
  graph.add_nodes("fluid", fluid);
  graph.add_nodes("solid", own_nodes(comm, num_solid));
  graph.add_edges({"fluid", "flows", "fluid"}, src, dst);
  graph.add_edges({"solid", "heats", "fluid"}, from, to, nullptr, has_weights ? &weights : nullptr);
  graph.add_edges({"fluid", "cools", "solid"}, to, from);
  graph.build();
  return graph;
}

void train(const sar_cxx11::Comm& comm, const std::string& type, const std::string& path) {
  std::vector<double> x, of_solid, target;
  for (const std::int64_t i : own_nodes(comm, num_fluid)) {
    x.push_back(static_cast<double>(7 * i % 11) / 10);
    x.push_back(static_cast<double>(5 * i % 13) / 10);
    target.push_back(static_cast<double>(7 * (i + num_fluid - 1) % 11) / 20);
  }
  for (const std::int64_t i : own_nodes(comm, num_solid))
    for (int f = 0; f < 3; ++f) of_solid.push_back(static_cast<double>((3 * i + f) % 7) / 7);
  sar_cxx11::Graph graph = make_graph(comm, type != "hgt");
  graph.set_rows("solid", sar_cxx11::array(of_solid, 3));
  const sar_cxx11::Model drawn(comm,
                               R"({"sar_model": 1, "type": ")" + type +
                                   R"(", "in_feats": 2, "hidden": 8, "out_feats": 1, "layers": 2,
                    "node_types": ["fluid", "solid"],
                    "edge_types": [["fluid", "flows", "fluid"], ["solid", "heats", "fluid"],
                                   ["fluid", "cools", "solid"]],
                    "inputs": {"solid": 3}})",
                               5);
  drawn.save(path);
  sar_cxx11::Model model = sar_cxx11::Model::load(comm, path);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "adam", "lr": 0.01})");
  for (int step = 0; step < num_steps; ++step) {
    const double loss =
        model.train_step(optimizer, graph, sar_cxx11::array(x, 2), sar_cxx11::array(target, 1), SAR_LOSS_MSE,
                         nullptr, nullptr, "fluid");
    if (comm.rank() == 0) std::printf("%.16e\n", loss);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  try {
    sar_cxx11::check(sar_init());
    {
      const sar_cxx11::Comm comm(MPI_COMM_WORLD);
      for (const char* type : {"rgcn", "hgt", "hetero-sage", "hetero-gat"}) train(comm, type, argv[1]);
    }
    sar_cxx11::check(sar_finalize());
  } catch (const sar_cxx11::Error& error) {
    std::fprintf(stderr, "typed_losses: %s\n", error.what());
    return 1;
  }
}
