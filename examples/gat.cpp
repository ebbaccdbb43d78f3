/// GAT, full batch, on as many workers as mpirun starts:   mpirun -n 2 gat
///
/// As graphsage.cpp, with attention: each of several heads weighs the in-edges of a node by what it sees at
/// their two ends. No weight of an edge is ever kept, however many edges there are.
#include "run.hpp"

#include <sar/sar.hpp>

#include <iostream>

using namespace sar;

/// Two layers as in the paper (arXiv 1710.10903): heads side by side, ELU, then one head; dropout of the
/// inputs and of the attention coefficients.
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

  Variable operator()(const GraphShardManager& graph, const Variable& x) {
    const Index nodes = x.num_rows();
    const Variable h = reshape(hidden(graph, x), {nodes, hidden.num_heads() * hidden.out_feats()});
    return reshape(out(graph, h), {nodes, out.out_feats()});  // [nodes, 1 head, classes]
  }
};

int train(const Communicator& comm) {
  const ThreadLimit threads(default_num_threads(comm));

  // A graph with planted classes, made in pieces: this worker gets its nodes and their in-edges. With a self
  // loop a node can attend to itself.
  NodeData data = make_sbm(comm, {.nodes = 20000, .degree = 16, .classes = 16},
                           {.add_self_loops = true, .partition = PartitionMethod::random});
  const GraphShardManager graph = construct_full_graph(comm, data);

  // The same seed gives the same initial parameters everywhere; no broadcast is needed.
  Generator gen(/*seed=*/0);
  Net net(data.features.row_size(), /*per_head=*/16, /*heads=*/4, data.num_classes, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});

  for (int epoch = 1; epoch <= 20; ++epoch) {
    net.train();
    Tape tape;  // while it lives, operations are recorded
    const Variable loss = cross_entropy(net(graph, data.features), data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);  // each worker has seen its own nodes only: add up
    optimizer.step();
    optimizer.zero_grad();

    net.eval();
    const NoTape inference;
    const double valid = accuracy(net(graph, data.features).value(), data.labels, data.val_mask, comm);
    if (comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << "  validation " << valid
                << std::endl;
  }
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);  // MPI, unless somebody has initialized it already
  return examples::run("gat", train);
}
