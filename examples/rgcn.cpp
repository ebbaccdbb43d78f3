// SPDX-License-Identifier: MIT

/// A relational GCN, full-batch training, on as many ranks as mpirun starts:   mpirun -n 2 rgcn
///
/// Like graphsage.cpp, on a graph with several edge types. Most neighbors have another class here, and the
/// type of an edge is a hint at which one. A GraphSAGE of this size ignores the types and reaches an accuracy
/// of only 0.58.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>

using namespace sar;

/// The edge data that the convolutions need for this rank's in-edges, in the graph's edge order.
struct TypedEdges {
  Array<Index> types;
  Tensor norm;  // 1 / in-degree of the destination: averages the messages
};

/// About half of the edges have a type that tells the distance between the classes of their ends; the types
/// of all other edges are noise. Random draws are keyed by edge ids and do not depend on the edges' owners.
TypedEdges make_relations(const Graph& graph, const Tensor& labels, Index num_rels) {
  const NoTape data_only;
  const Tensor steps = graph.apply_edges(fn::v_sub_u(labels, labels)).value();
  const Random draws({.seed = 1});
  TypedEdges relations;
  for (Index e = 0; e < graph.num_edges(); ++e) {
    const auto id = static_cast<std::uint64_t>(graph.edge_ids()[e]);
    const auto noise = static_cast<Index>(draws.uniform(id, 0) * static_cast<double>(num_rels));
    const Index step = draws.uniform(id, 1) < 0.5 ? static_cast<Index>(steps.row(e)[0]) : noise;
    relations.types.push_back((step + num_rels) % num_rels);
  }
  Tensor inverse({graph.num_nodes(), 1});
  for (Index v = 0; v < graph.num_nodes(); ++v)
    inverse.row(v)[0] = real(1) / static_cast<real>(std::max<Index>(graph.in_degrees()[v], 1));
  const auto of_destination = [&](const EdgeBatch& edges) { return edges.dst(Variable(inverse)); };
  relations.norm = graph.apply_edges(of_destination).value();
  return relations;
}

/// Two layers; the matrices of all types are linear combinations of a few shared ones (arXiv 1703.06103).
struct Net : Module {
  RelGraphConv hidden, out;

  Net(Index in_feats, Index width, Index num_classes, Index num_rels, Index num_bases, Generator& gen)
      : hidden(in_feats, width, num_rels, gen,
               {.regularizer = Regularizer::basis,
                .num_bases = num_bases,
                .dropout = 0.2,
                .activation = [](Variable y) { return relu(std::move(y)); }}),
        out(width, num_classes, num_rels, gen, {.regularizer = Regularizer::basis, .num_bases = num_bases}) {
    register_module("hidden", hidden);
    register_module("out", out);
  }

  Variable operator()(const Graph& graph, const Variable& x, const TypedEdges& relations) {
    const Variable h = hidden(graph, x, relations.types, relations.norm);
    return out(graph, h, relations.types, relations.norm);
  }
};

int train(const Communicator& comm) {
  const ThreadLimit threads(default_num_threads(comm));

  // Three edges in ten stay within a class. Each rank gets its nodes and their in-edges.
  constexpr Index num_classes = 8, num_rels = 8;
  NodeData data = make_sbm(comm, {.nodes = 10000, .degree = 12, .classes = num_classes, .homophily = 0.3},
                           {.partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);
  Tensor labels({data.features.num_rows(), 1});
  std::copy(data.labels.begin(), data.labels.end(), labels.data());
  const TypedEdges relations = make_relations(graph, labels, num_rels);

  Generator gen(/*seed=*/0);
  Net net(data.features.row_size(), /*width=*/64, num_classes, num_rels, /*num_bases=*/8, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});

  for (int epoch = 1; epoch <= 20; ++epoch) {
    net.train();
    Tape tape;
    const Variable loss =
        cross_entropy(net(graph, data.features, relations), data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);
    optimizer.step();
    optimizer.zero_grad();

    net.eval();
    const NoTape inference;
    const double valid =
        accuracy(net(graph, data.features, relations).value(), data.labels, data.val_mask, comm);
    if (comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << "  validation " << valid
                << std::endl;
  }
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("rgcn", train);
}
