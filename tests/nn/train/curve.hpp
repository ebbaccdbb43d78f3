// SPDX-License-Identifier: MIT

/// Checks that the loss curve of a training does not depend on the number of ranks, the mode or the
/// partitioning.
#pragma once

#include <doctest/doctest.h>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <vector>

namespace sar::test {

/// Three SAGE layers with batch norm, ReLU and dropout between them.
struct Net : Module {
  ModuleList<SAGEConv> convs;
  ModuleList<DistributedBN1D> bns;
  ModuleList<Dropout> dropouts;

  Net(std::vector<Index> widths, double dropout, const Communicator& comm, std::uint64_t seed) {
    register_module("convs", convs);
    register_module("bns", bns);
    register_module("dropouts", dropouts);
    Generator gen(seed);
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      convs.emplace_back(widths[i], widths[i + 1], gen);
      if (i + 2 == widths.size()) break;
      bns.emplace_back(widths[i + 1], comm);
      dropouts.emplace_back(dropout, gen);
    }
  }
  Variable operator()(const Graph& graph, Variable h) {
    for (std::size_t i = 0; i + 1 < convs.size(); ++i)
      h = batch_norm_relu_dropout(convs[i](graph, h), bns[i], dropouts[i], graph.dst_ids());
    return convs.back()(graph, h);
  }
};

/// One training step; the loss before it.
template <class Model>
double step(Model& model, Optimizer& optimizer, const Graph& graph, const NodeData& data,
            const Communicator& comm) {
  Tape tape;
  const Variable loss = cross_entropy(model(graph, data.features), data.labels, data.train_mask, comm);
  tape.backward(loss);
  gather_grads(comm, model);
  optimizer.step();
  optimizer.zero_grad();
  return static_cast<double>(loss.value().item());
}

inline std::vector<double> curve(const Communicator& comm, NodeData data, const GraphOptions& options,
                                 int epochs) {
  const Graph graph = construct_full_graph(comm, data, options);
  Net net({data.features.row_size(), 32, 32, data.num_classes}, 0.5, comm, 3);
  Adam adam(net.named_parameters(), {.lr = 0.01, .weight_decay = 5e-4});
  std::vector<double> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) losses.push_back(step(net, adam, graph, data, comm));
  return losses;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(a[i])) return INFINITY;
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(b[i]));
  }
  return largest;
}

/// `load(comm, partition)` gives the data. Each rank also trains the whole graph by itself, to compare with.
template <class Load>
void check_curves(const Load& load) {
  const Communicator comm = Communicator::world();
  const int epochs = sizeof(real) == 8 ? 50 : 20;
  const double accepted = sizeof(real) == 8 ? 1e-9 : 1e-4;
  const std::vector<double> alone =
      curve(Communicator::self(), load(Communicator::self(), PartitionMethod::contiguous), {}, epochs);
  CHECK(alone.back() < alone.front());
  std::vector<PartitionMethod> methods{PartitionMethod::contiguous, PartitionMethod::random,
                                       PartitionMethod::ldg};
  if (has_metis()) methods.push_back(PartitionMethod::metis);
  for (const PartitionMethod method : methods) {
    CAPTURE(to_string(method));
    CHECK(largest_difference(curve(comm, load(comm, method), {}, epochs), alone) < accepted);
  }
  for (const GraphOptions& options :
       {GraphOptions{.mode = HaloMode::sequential}, GraphOptions{.mode = HaloMode::one_shot},
        GraphOptions{.mode = HaloMode::rematerialize, .pipeline_depth = 2, .max_halo_bytes = 10000}}) {
    CAPTURE(static_cast<int>(options.mode));
    CHECK(largest_difference(curve(comm, load(comm, PartitionMethod::random), options, epochs), alone) <
          accepted);
  }
}

}  // namespace sar::test
