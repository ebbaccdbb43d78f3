// SPDX-License-Identifier: MIT

/// SIGN and correct-and-smooth:   mpirun -n 2 sign path/to/cora
///
/// Without a directory it generates a graph with planted classes.
///
/// The graph is used twice: before training, to average the features over several hops, and after training,
/// to propagate the known training labels. The network itself processes rows independently: an epoch
/// communicates only for the loss and the gradients.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <iostream>

using namespace sar;

int train(const Communicator& comm, const char* dataset) {
  const ThreadLimit threads(default_num_threads(comm));
  NodeData data = dataset != nullptr ? load_dataset(comm, dataset, {.normalize_features = true})
                                     : make_sbm(comm, {.nodes = 20000, .degree = 16, .classes = 16});
  const Graph graph = construct_full_graph(comm, data);

  constexpr int hops = 2;
  const Tensor features = sign_features(graph, data.features, hops, HopNorm::mean);

  Generator gen(/*seed=*/0);
  SIGN net(data.features.row_size(), /*hidden=*/64, data.num_classes, gen, {.hops = hops});
  Adam optimizer(net.named_parameters(), {.lr = 0.01});
  for (int epoch = 1; epoch <= 40; ++epoch) {
    Tape tape;
    const Variable logits = net(features, graph.src_ids());  // the ids key dropout
    const Variable loss = cross_entropy(logits, data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, net);
    optimizer.step();
    optimizer.zero_grad();
    if (epoch % 10 == 0 && comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << std::endl;
  }

  net.eval();
  const Tensor predicted = softmax(net(features, graph.src_ids())).value();
  const double alone = accuracy(predicted, data.labels, data.test_mask, comm);
  const Tensor better = correct_and_smooth(graph, predicted, data.labels, data.train_mask);
  const double test = accuracy(better, data.labels, data.test_mask, comm);
  if (comm.rank() == 0)
    std::cout << "test accuracy " << alone << ", corrected and smoothed " << test << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("sign",
                       [&](const Communicator& comm) { return train(comm, argc > 1 ? argv[1] : nullptr); });
}
