// SPDX-License-Identifier: MIT

/// A small training. Every program that uses the library gets the same loss from it, whatever its compiler
/// flags, its communicator and the number of ranks.
#pragma once

#include <sar/data.hpp>

#include <cmath>

// of its precision, as the names of the library are, so that a program can have this in both
namespace consumer::inline SAR_PRECISION {

/// A graph convolution and a SAGE convolution on the karate club, 10 steps: the last loss.
inline constexpr double expected_loss = 0.317905;

inline bool as_expected(double loss) {
  return std::abs(loss - expected_loss) <= 1e-4 * expected_loss;
}

struct Model : sar::Module {
  sar::GraphConv first;
  sar::SAGEConv second;

  Model(sar::Index features, sar::Index classes, sar::Generator& generator)
      : first(features, 16, generator), second(16, classes, generator) {
    register_module("first", first);
    register_module("second", second);
  }
  sar::Variable operator()(const sar::Graph& graph, const sar::Variable& x) {
    return second(graph, relu(first(graph, x)));
  }
};

/// Collective over `comm`.
inline double train(const sar::Communicator& comm) {
  sar::NodeData data = sar::make_karate(comm, {.add_self_loops = true});
  const sar::Graph graph = construct_full_graph(comm, data);
  sar::Generator generator(0);
  Model model(data.features.row_size(), data.num_classes, generator);
  sar::Adam optimizer(model.named_parameters(), {.lr = 0.01});
  double loss_of_step = 0;
  for (int step = 0; step < 10; ++step) {
    sar::Tape tape;
    const sar::Variable loss = cross_entropy(model(graph, data.features), data.labels, data.train_mask, comm);
    tape.backward(loss);
    gather_grads(comm, model);
    optimizer.step();
    optimizer.zero_grad();
    loss_of_step = static_cast<double>(loss.value().item());
  }
  return loss_of_step;
}

}  // namespace consumer
