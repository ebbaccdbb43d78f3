// SPDX-License-Identifier: MIT

/// The graph convolutional network of Kipf and Welling (arXiv 1609.02907), trained on a dataset directory of
/// NumPy files:
///
///     mpirun -n 2 gcn path/to/cora
///
/// Without a directory it uses Zachary's karate club, with the heads of the two factions as training nodes.
///
/// Room examples: Tutorial programs, each to be read from top to bottom.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <iostream>

using namespace sar;

/// Two layers, each with dropout of its input.
struct GCN : Module {
  Dropout drop_features, drop_hidden;
  ModuleList<GraphConv> layers;

  GCN(Index in_feats, Index hidden, Index num_classes, Generator& gen)
      : drop_features(0.5, gen), drop_hidden(0.5, gen) {
    register_module("drop_features", drop_features);
    register_module("drop_hidden", drop_hidden);
    register_module("layers", layers);
    layers.emplace_back(in_feats, hidden, gen);
    layers.emplace_back(hidden, num_classes, gen);
  }

  Variable operator()(const Graph& graph, const Variable& x) {
    // graph.src_ids() are the original ids: a node gets the same dropout mask on whichever rank it is.
    const Variable h = relu(layers[0](graph, drop_features(x, graph.src_ids())));
    return layers[1](graph, drop_hidden(h, graph.src_ids()));
  }
};

int train(const Communicator& comm, const char* dataset) {
  const ThreadLimit threads(default_num_threads(comm));
  DatasetOptions options{.add_self_loops = true};
  options.normalize_features = true;
  NodeData data = dataset != nullptr ? load_dataset(comm, dataset, options) : make_karate(comm, options);
  const Graph graph = construct_full_graph(comm, data);

  Generator gen(/*seed=*/0);
  GCN net(data.features.row_size(), /*hidden=*/16, data.num_classes, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01, .weight_decay = 5e-4, .decay_only = {"layers.0"}});

  for (int epoch = 1; epoch <= 200; ++epoch) {
    Tape tape;
    const Variable loss = cross_entropy(net(graph, data.features), data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);
    optimizer.step();
    optimizer.zero_grad();
    if (epoch % 20 == 0 && comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << std::endl;
  }

  net.eval();  // no dropout; without a tape nothing is recorded
  const double test = accuracy(net(graph, data.features).value(), data.labels, data.test_mask, comm);
  if (comm.rank() == 0) std::cout << "test accuracy " << test << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("gcn",
                       [&](const Communicator& comm) { return train(comm, argc > 1 ? argv[1] : nullptr); });
}
