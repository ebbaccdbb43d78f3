// SPDX-License-Identifier: MIT

/// Full-batch link prediction with a GraphSAGE and the dot product, for tests.
#pragma once

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sar::test {

/// GraphSAGE of two layers.
struct Encoder : Module {
  SAGEConv hidden, out;
  Dropout dropout;
  Encoder(Index in_feats, Index width, Generator& gen)
      : hidden(in_feats, width, gen), out(width, width, gen), dropout(0.5, gen) {
    register_module("hidden", hidden);
    register_module("out", out);
    register_module("dropout", dropout);
  }
  Variable operator()(const Graph& graph, const Variable& x) {
    return out(graph, dropout(relu(hidden(graph, x)), graph.src_ids()));
  }
};

/// Edges of a dataset for training and test, and negatives that are no edges.
struct Task {
  Communicator comm;
  NodeData data;
  std::shared_ptr<const EdgeSet> edges;
  EdgeSplit split;
  Graph graph;
  NegativeSampler negatives, evaluation;

  Task(const Communicator& on, NodeData whole, std::uint64_t seed)
      : comm(on),
        data(std::move(whole)),
        edges(std::make_shared<EdgeSet>(comm, data.book, data.edges)),
        split(split_edges(comm, data, {.valid = 0.05, .test = 0.1, .seed = seed})),
        graph(training_graph()),
        negatives(graph, {.seed = seed, .exclude_self_loops = true}),
        evaluation(graph, {.seed = seed + 100, .exclude_self_loops = true, .exclude_edges = edges}) {}

  Graph training_graph() {
    data.edges = split.train;
    return construct_full_graph(comm, data);
  }
  [[nodiscard]] Variable scores(std::span<const Index> src, std::span<const Index> dst,
                                const Variable& h) const {
    const NodePairs pairs(comm, data.book, src, dst);
    return DotPredictor()(pairs.src(h), pairs.dst(h));
  }
  [[nodiscard]] double test_auc(const Variable& h) const {
    const NodePairList others = evaluation.global_uniform(split.test.id, 0);
    return roc_auc(scores(split.test.src, split.test.dst, h).value(),
                   scores(others.src, others.dst, h).value(), comm);
  }
};

/// The loss of each epoch, then the AUC of the test.
inline std::vector<double> train(const Task& task, Index width, int epochs, std::uint64_t seed) {
  Generator gen(seed);
  Encoder net(task.data.features.row_size(), width, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});
  std::vector<double> curve;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const NodePairList drawn =
        task.negatives.global_uniform(task.split.train.id, static_cast<std::uint64_t>(epoch));
    Tape tape;
    const Variable h = net(task.graph, task.data.features);
    const Variable loss =
        link_bce_with_logits(DotPredictor()(task.graph, h), task.scores(drawn.src, drawn.dst, h), task.comm);
    tape.backward(loss);
    gather_grads(task.comm, net);
    optimizer.step();
    optimizer.zero_grad();
    curve.push_back(loss.value().item());
  }
  net.eval();
  curve.push_back(task.test_auc(net(task.graph, task.data.features)));
  return curve;
}

}  // namespace sar::test
