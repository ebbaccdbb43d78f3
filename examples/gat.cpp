// SPDX-License-Identifier: MIT

/// GAT, full-batch training, on as many ranks as mpirun starts:   mpirun -n 2 gat
///
/// Like graphsage.cpp, with attention: each head weights the in-edges of a node by the features of both ends.
/// Attention coefficients are never stored per edge.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

using namespace sar;

/// Two layers as in the paper (arXiv 1710.10903): several heads side by side and ELU, then one head, with
/// dropout of the inputs and of the attention coefficients.
struct Net : Module {
  GATConv hidden, out;

  Net(Index in_feats, Index per_head, Index heads, Index num_classes, Generator& gen)
      : hidden(
            in_feats, per_head, heads, gen,
            {.feat_drop = 0.3, .attn_drop = 0.3, .activation = [](Variable y) { return elu(std::move(y)); }}),
        out(heads * per_head, num_classes, 1, gen, {.feat_drop = 0.3, .attn_drop = 0.3}) {
    register_module("hidden", hidden);
    register_module("out", out);
  }

  Variable operator()(const Graph& graph, const Variable& x) {
    const Index nodes = x.num_rows();
    const Variable h = reshape(hidden(graph, x), {nodes, hidden.num_heads() * hidden.out_feats()});
    return reshape(out(graph, h), {nodes, out.out_feats()});  // [nodes, 1 head, classes]
  }
};

int train(const Communicator& comm) {
  const ThreadLimit threads(default_num_threads(comm));

  // A graph with planted classes. It is generated in distributed form: each rank gets its nodes and their
  // in-edges. Self loops let a node attend to itself.
  NodeData data = make_sbm(comm, {.nodes = 20000, .degree = 16, .classes = 16},
                           {.add_self_loops = true, .partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);

  // The same seed gives the same initial parameters on every rank, without a broadcast.
  Generator gen(/*seed=*/0);
  Net net(data.features.row_size(), /*per_head=*/16, /*heads=*/4, data.num_classes, gen);
  examples::train_nodes(comm, data, graph, net);
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);  // initializes MPI, unless that is already done
  return examples::run("gat", train);
}
