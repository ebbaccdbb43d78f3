// SPDX-License-Identifier: MIT

/// GraphSAGE, full-batch training, on as many ranks as mpirun starts:   mpirun -n 2 graphsage
///
/// Every rank runs this program and holds its share of the nodes. The code reads as if each rank held the
/// whole graph: layers, norms and losses communicate internally.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

using namespace sar;

/// Three convolutions with batch norm over the nodes of all ranks, ReLU and dropout between them.
struct Net : Module {
  ModuleList<SAGEConv> convs;
  ModuleList<DistributedBN1D> norms;
  ModuleList<Dropout> dropouts;

  Net(Index in_feats, Index hidden, Index num_classes, const Communicator& comm, Generator& gen) {
    register_module("convs", convs);
    register_module("norms", norms);
    register_module("dropouts", dropouts);
    convs.emplace_back(in_feats, hidden, gen);
    convs.emplace_back(hidden, hidden, gen);
    convs.emplace_back(hidden, num_classes, gen);
    for (int i = 0; i < 2; ++i) {
      norms.emplace_back(hidden, comm);
      dropouts.emplace_back(0.5, gen);
    }
  }

  Variable operator()(const Graph& graph, Variable h) {
    for (std::size_t i = 0; i + 1 < convs.size(); ++i)
      h = batch_norm_relu_dropout(convs[i](graph, h), norms[i], dropouts[i], graph.dst_ids());
    return convs.back()(graph, h);
  }
};

int train(const Communicator& comm) {
  const ThreadLimit threads(default_num_threads(comm));

  // A graph with planted classes. It is generated in distributed form: each rank gets its nodes and their
  // in-edges.
  NodeData data =
      make_sbm(comm, {.nodes = 20000, .degree = 16, .classes = 16}, {.partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);

  // The same seed gives the same initial parameters on every rank, without a broadcast.
  Generator gen(/*seed=*/0);
  Net net(data.features.row_size(), /*hidden=*/64, data.num_classes, comm, gen);
  examples::train_nodes(comm, data, graph, net);
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);  // initializes MPI, unless that is already done
  return examples::run("graphsage", train);
}
