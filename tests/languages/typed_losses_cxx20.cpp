// SPDX-License-Identifier: MIT

/// The losses of small trainings on a graph with node and edge types, one a line, by the library's own
/// classes. typed_losses.c is the same program in C.
#include <sar/models.hpp>
#include <sar/sar.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace sar;

constexpr int num_fluid = 30, num_solid = 12, num_steps = 5;

/// Nodes of this rank.
std::vector<std::int64_t> own_nodes(const Communicator& comm, int nodes) {
  std::vector<std::int64_t> own;
  for (int i = comm.rank() * nodes / comm.size(); i < (comm.rank() + 1) * nodes / comm.size(); ++i)
    own.push_back(i);
  return own;
}

Tensor tensor_of(const std::vector<double>& values, Shape shape) {
  Tensor result(shape);
  for (Index i = 0; i < result.size(); ++i)
    result.data()[i] = static_cast<real>(values[static_cast<std::size_t>(i)]);
  return result;
}

HostGraph make_graph(const Communicator& comm, bool has_weights) {
  std::vector<std::int64_t> fluid, src, dst, from, to;
  const std::vector<std::int64_t> solid = own_nodes(comm, num_solid);
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
  GlobalEdges heats{.src = from, .dst = to};
  if (has_weights) heats.weight = tensor_of(weight, {std::ssize(weight)});
  return {comm,
          {{"fluid", fluid}, {"solid", solid}},
          {{{"fluid", "flows", "fluid"}, {.src = src, .dst = dst}},
           {{"solid", "heats", "fluid"}, heats},
           {{"fluid", "cools", "solid"}, {.src = to, .dst = from}}}};
}

void train(const Communicator& comm, const std::string& type, const std::string& path) {
  std::vector<double> x, of_solid, target;
  for (const std::int64_t i : own_nodes(comm, num_fluid)) {
    x.push_back(static_cast<double>(7 * i % 11) / 10);
    x.push_back(static_cast<double>(5 * i % 13) / 10);
    target.push_back(static_cast<double>(7 * (i + num_fluid - 1) % 11) / 20);
  }
  for (const std::int64_t i : own_nodes(comm, num_solid))
    for (int f = 0; f < 3; ++f) of_solid.push_back(static_cast<double>((3 * i + f) % 7) / 7);
  const HostGraph graph = make_graph(comm, type != "hgt");
  const Index n = graph.num_nodes("fluid"), m = graph.num_nodes("solid");
  const Graph::Rows rows{{"fluid", tensor_of(x, {n, 2})}, {"solid", tensor_of(of_solid, {m, 3})}};
  const ModelDescription description{
      .type = type,
      .in_feats = 2,
      .hidden = 8,
      .out_feats = 1,
      .layers = 2,
      .node_types = {"fluid", "solid"},
      .edge_types = {{"fluid", "flows", "fluid"}, {"solid", "heats", "fluid"}, {"fluid", "cools", "solid"}},
      .inputs = {{"solid", 3}}};
  Generator gen(5);
  save_model(comm, path, GraphModel(description, comm, gen));
  const std::unique_ptr<GraphModel> model = load_model(comm, path);
  model->train();
  Adam optimizer(model->named_parameters(), {.lr = 0.01});
  const Tensor wanted = tensor_of(target, {n, 1});
  for (int step = 0; step < num_steps; ++step) {
    Tape tape;
    const Variable loss = mse((*model)(graph, rows).at("fluid"), wanted, comm);
    const double value = loss.value().item();
    tape.backward(loss);
    gather_grads(comm, *model);
    optimizer.step();
    optimizer.zero_grad();
    if (comm.rank() == 0) std::printf("%.16e\n", value);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  try {
    const Environment environment(argc, argv);
    const Communicator comm = Communicator::world();
    for (const char* type : {"rgcn", "hgt", "hetero-sage", "hetero-gat"}) train(comm, type, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "typed_losses: %s\n", error.what());
    return 1;
  }
}
