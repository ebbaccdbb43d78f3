// SPDX-License-Identifier: MIT

/// An epoch of training on a graph of 3 node types, 6 relations and 2,000,000 edges in its homogeneous form:
/// the shape of ../shared/tools/peer/dgl_hetero.py, whose seconds and memory are DGL's.
///     bench_typed [model] [threads] [epochs] [share]    model: rgcn or hgt; share: of the nodes and edges, 1 by default
/// Two layers of width 128 and 16, the loss of the first node type, Adam. The rate is epochs a second; the
/// reference is two GraphConv of the same widths, which do not see types. Then a line of
/// bytes: the peak of tensors and graph arrays in all epochs, and of the graph's arrays.
#include "bench.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hgt_conv.hpp>
#include <sar/nn/conv/rel_graph_conv.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace sar;

namespace {

constexpr Index width = 128, classes = 16, num_relations = 6;

struct TypedGraph {
  Graph graph;
  EdgeTypes types;  ///< of this rank's edges
  std::vector<Index> node_types;
  Tensor features;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;  ///< nodes of the first type
};

/// Sources as k 7919 mod n for k from a zeta distribution of exponent 1.8, destinations uniform.
TypedGraph make_graph(const Communicator& comm, double share) {
  const auto scaled = [share](Index n) { return static_cast<Index>(share * static_cast<double>(n)); };
  const Index nodes[] = {scaled(80000), scaled(60000), scaled(10000)};  // paper, author, field
  const Index first[] = {0, nodes[0], nodes[0] + nodes[1]}, all = nodes[0] + nodes[1] + nodes[2];
  struct Relation {
    int src, dst;
    Index edges;
  };
  const Relation relations[num_relations] = {{1, 0, 500000}, {0, 1, 500000}, {0, 0, 400000},
                                             {0, 2, 250000}, {2, 0, 250000}, {1, 1, 100000}};
  const PartitionBook book = PartitionBook::even(all, comm.size());
  const Random random({.seed = 1});
  EdgeList edges;
  std::vector<Index> type_of_id;
  for (Index r = 0; r < num_relations; ++r)
    for (Index k = 0; k < scaled(relations[r].edges); ++k) {
      const auto id = static_cast<std::uint64_t>(type_of_id.size());
      type_of_id.push_back(r);
      const double zeta = std::floor(std::pow(1 - random.uniform(id, 0), -1 / 0.8));
      const Index source = static_cast<Index>(std::fmod(zeta, 1e15)) % (Index{1} << 40) * 7919;
      const Index dst =
          first[relations[r].dst] +
          static_cast<Index>(random.uniform(id, 1) * static_cast<double>(nodes[relations[r].dst]));
      if (book.owner(dst) != comm.rank()) continue;
      edges.src.push_back(first[relations[r].src] + source % nodes[relations[r].src]);
      edges.dst.push_back(dst);
      edges.id.push_back(static_cast<Index>(id));
    }
  const Graph graph(comm, book, book, std::move(edges), true);
  Array<std::uint16_t> types;
  for (const Index id : graph.edge_ids())
    types.push_back(static_cast<std::uint16_t>(type_of_id[static_cast<std::size_t>(id)]));
  TypedGraph g{graph, EdgeTypes(std::move(types)), {}, Tensor({graph.num_nodes(), width}), {}, {}};
  for (Index i = 0; i < graph.num_nodes(); ++i) {
    const Index v = book.begin(comm.rank()) + i;
    for (Index j = 0; j < width; ++j)
      g.features.row(i)[j] =
          static_cast<real>(random.uniform(static_cast<std::uint64_t>(v), 2 + j)) - real(0.5);
    g.labels.push_back(v * 31 % classes);
    g.mask.push_back(v < nodes[0] ? 1 : 0);
    g.node_types.push_back(v < first[1] ? 0 : v < first[2] ? 1 : 2);
  }
  return g;
}

/// Two layers, and how they are called.
struct Net : Module {
  using Module::register_module;
  std::function<Variable(const Variable& x)> forward;
};

void add_rgcn(Net& net, const TypedGraph& g, Generator& gen) {
  const RelGraphConvOptions options{.regularizer = Regularizer::basis, .num_bases = 2};
  const auto first = std::make_shared<RelGraphConv>(width, width, num_relations, gen, options);
  const auto second = std::make_shared<RelGraphConv>(width, classes, num_relations, gen, options);
  net.register_module("first", *first);
  net.register_module("second", *second);
  net.forward = [=, &g](const Variable& x) {
    return (*second)(g.graph, relu((*first)(g.graph, x, g.types)), g.types);
  };
}

void add_hgt(Net& net, const TypedGraph& g, Generator& gen) {
  const auto first = std::make_shared<HGTConv>(width, 32, 4, 3, num_relations, gen);
  const auto second = std::make_shared<HGTConv>(width, 4, 4, 3, num_relations, gen);
  net.register_module("first", *first);
  net.register_module("second", *second);
  net.forward = [=, &g](const Variable& x) {
    return (*second)(g.graph, (*first)(g.graph, x, g.node_types, g.types), g.node_types, g.types);
  };
}

/// What the same edges cost without types.
void add_gcn(Net& net, const TypedGraph& g, Generator& gen) {
  const GraphConvOptions options{.norm = GraphConvNorm::none};
  const auto first = std::make_shared<GraphConv>(width, width, gen, options);
  const auto second = std::make_shared<GraphConv>(width, classes, gen, options);
  net.register_module("first", *first);
  net.register_module("second", *second);
  net.forward = [=, &g](const Variable& x) { return (*second)(g.graph, relu((*first)(g.graph, x))); };
}

double epoch(const Communicator& comm, const TypedGraph& g, Net& net, Adam& optimizer) {
  Tape tape;
  const Variable loss = cross_entropy(net.forward(g.features), g.labels, g.mask, comm);
  tape.backward(loss);
  gather_grads(comm, net);
  optimizer.step();
  optimizer.zero_grad();
  return loss.value().item();
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const std::string model = argc > 1 ? argv[1] : "rgcn";
  const ThreadLimit threads(argc > 2 ? std::atoi(argv[2]) : default_num_threads(comm));
  const int epochs = argc > 3 ? std::atoi(argv[3]) : 5;
  const TypedGraph g = make_graph(comm, argc > 4 ? std::atof(argv[4]) : 1);

  Generator gen(0);
  Net typed, plain;
  (model == "hgt" ? add_hgt : add_rgcn)(typed, g, gen);
  add_gcn(plain, g, gen);
  Adam adam(typed.named_parameters(), {.lr = 0.001}), plain_adam(plain.named_parameters(), {.lr = 0.001});
  const double first_loss = epoch(comm, g, typed, adam);
  reset_peak_bytes();
  double loss = epoch(comm, g, typed, adam);
  const std::size_t peak = peak_bytes();
  const auto [ours, theirs] = bench::best_seconds(
      epochs, [&] { loss = epoch(comm, g, typed, adam); }, [&] { (void)epoch(comm, g, plain, plain_adam); });
  if (comm.rank() != 0) return 0;
  bench::print({.name = model + " epoch",
                .ranks = comm.size(),
                .seconds = ours,
                .rate = 1 / ours,
                .unit = "epochs/s",
                .reference = 1 / theirs});
  std::cout << R"({"name":")" << model << R"( bytes","peak":)" << peak << R"(,"graph":)"
            << g.graph.index_bytes() << R"(,"first_loss":)" << first_loss << R"(,"last_loss":)" << loss << "}"
            << std::endl;
  return 0;
}
