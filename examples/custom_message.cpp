// SPDX-License-Identifier: MIT

/// A user-defined message, on as many ranks as mpirun starts:   mpirun -n 2 custom_message
///
/// Models of meshes and particles often apply a small network to both ends of an edge and to the edge itself.
/// Any differentiable function of these can be a message. It is computed for a chunk of edges at a time, in
/// the forward pass and again in the backward pass, so that memory does not grow with the number of edges.
/// Parameters used in the function receive gradients like all others.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <iostream>

using namespace sar;

/// h_v + MLP(h_v, mean over the in-edges e = (u, v) of MLP(h_u, h_v, x_e)).
struct InteractionLayer : Module {
  Linear edge_in, edge_out, node;

  InteractionLayer(Index hidden, Index edge_feats, Generator& gen)
      : edge_in(2 * hidden + edge_feats, hidden, gen),
        edge_out(hidden, hidden, gen),
        node(2 * hidden, hidden, gen) {
    register_module("edge_in", edge_in);
    register_module("edge_out", edge_out);
    register_module("node", node);
  }

  Variable operator()(const Graph& graph, const Variable& h, const Variable& x) {
    const Variable interaction = graph.update_all(
        [this, h, x](const EdgeBatch& edges) {
          const Variable ends = concat_columns({edges.src(h), edges.dst(h), edges.edata(x)});
          return relu(edge_out(relu(edge_in(ends))));
        },
        fn::mean);
    return h + relu(node(concat_columns({h, interaction})));
  }
};

struct Net : Module {
  Linear encoder, decoder;
  ModuleList<InteractionLayer> layers;

  Net(Index in_feats, Index edge_feats, Index hidden, Index num_classes, Generator& gen)
      : encoder(in_feats, hidden, gen), decoder(hidden, num_classes, gen) {
    register_module("encoder", encoder);
    register_module("layers", layers);
    register_module("decoder", decoder);
    for (int i = 0; i < 2; ++i) layers.emplace_back(hidden, edge_feats, gen);
  }

  Variable operator()(const Graph& graph, const Variable& features, const Variable& x) {
    Variable h = relu(encoder(features));
    for (std::size_t i = 0; i < layers.size(); ++i) h = layers[i](graph, h, x);
    return decoder(h);
  }
};

int train(const Communicator& comm) {
  const ThreadLimit threads(default_num_threads(comm));

  NodeData data =
      make_sbm(comm, {.nodes = 5000, .degree = 12, .classes = 8}, {.partition = PartitionMethod::random});
  const Graph graph = construct_full_graph(comm, data);

  // Features of this rank's edges, in the graph's edge order. A mesh would have lengths and directions; this
  // example draws them, keyed by the edges' ids, so that they are the same for any number of ranks.
  constexpr Index edge_feats = 3;
  const Random random({.seed = 7});
  Tensor x({graph.num_edges(), edge_feats});
  for (Index e = 0; e < graph.num_edges(); ++e)
    for (Index j = 0; j < edge_feats; ++j)
      x.row(e)[j] = static_cast<real>(
          random.normal(static_cast<std::uint64_t>(graph.edge_ids()[e]), static_cast<std::uint64_t>(j)));

  Generator gen(/*seed=*/0);
  Net net(data.features.row_size(), edge_feats, /*hidden=*/32, data.num_classes, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});

  for (int epoch = 1; epoch <= 15; ++epoch) {
    Tape tape;
    const Variable loss = cross_entropy(net(graph, data.features, x), data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);
    optimizer.step();
    optimizer.zero_grad();

    const NoTape inference;
    const double valid = accuracy(net(graph, data.features, x).value(), data.labels, data.val_mask, comm);
    if (comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << "  validation " << valid
                << std::endl;
  }
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("custom_message", train);
}
