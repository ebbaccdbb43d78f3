// SPDX-License-Identifier: MIT

/// Link prediction, full-batch training: predicts which pairs of nodes are joined by an edge that was held
/// out.
///
///     mpirun -n 2 link_prediction path/to/cora
///
/// Without a directory it generates a graph with planted classes.
///
/// 85 % of the edges are used for training, 5 % for validation and 10 % for testing. A GraphSAGE computes a
/// representation of every node from the training edges; the score of a pair is the dot product of the
/// representations of its ends.
#include "run.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>

using namespace sar;

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

/// Returns the scores of pairs of nodes on any ranks: pairs.src(h) fetches the rows that other ranks own.
Variable scores(const NodePairs& pairs, const Variable& h) {
  return DotPredictor()(pairs.src(h), pairs.dst(h));
}

/// Returns the area under the ROC curve of some edges against as many pairs that are not edges.
double auc(const Graph& graph, const PartitionBook& book, const EdgeList& edges,
           const NegativeSampler& negatives, const Variable& h) {
  const NodePairs positive(graph.comm(), book, edges.src, edges.dst);
  const NodePairList others = negatives.global_uniform(edges.id, /*epoch=*/0);
  const NodePairs negative(graph.comm(), book, others.src, others.dst);
  return roc_auc(scores(positive, h).value(), scores(negative, h).value(), graph.comm());
}

int train(const Communicator& comm, const char* dataset) {
  const ThreadLimit threads(default_num_threads(comm));
  NodeData data = dataset != nullptr ? load_dataset(comm, dataset, {.normalize_features = true})
                                     : make_sbm(comm, {.nodes = 2000, .homophily = 0.9});
  const auto all_edges = std::make_shared<EdgeSet>(comm, data.book, data.edges);
  EdgeSplit split = split_edges(comm, data, {.valid = 0.05, .test = 0.1, .seed = 0});
  const auto train_edges = std::make_shared<EdgeSet>(comm, data.book, split.train);
  const Array<Index> train_ids = split.train.id;
  data.edges = std::move(split.train);  // messages use these edges only
  const Graph graph = construct_full_graph(comm, data);

  // One negative pair per edge: new ones in each epoch, and the same for any number of ranks.
  const NegativeSampler negatives(graph, {.exclude_self_loops = true, .exclude_edges = train_edges});
  const NegativeSampler evaluation(graph,
                                   {.seed = 1, .exclude_self_loops = true, .exclude_edges = all_edges});

  Generator gen(/*seed=*/0);
  Encoder net(data.features.row_size(), /*width=*/96, gen);
  Adam optimizer(net.named_parameters(), {.lr = 0.01});
  for (int epoch = 1; epoch <= 100; ++epoch) {
    net.train();
    const NodePairList drawn = negatives.global_uniform(train_ids, static_cast<std::uint64_t>(epoch));
    const NodePairs pairs(comm, data.book, drawn.src, drawn.dst);
    Tape tape;
    const Variable h = net(graph, data.features);
    const Variable of_edges = DotPredictor()(graph, h);  // one score per edge of the graph
    const Variable loss = link_bce_with_logits(of_edges, scores(pairs, h), comm);
    tape.backward(loss);
    gather_grads(comm, net);
    optimizer.step();
    optimizer.zero_grad();

    if (epoch % 20 != 0) continue;
    net.eval();
    const NoTape inference;
    const double valid = auc(graph, data.book, split.valid, evaluation, net(graph, data.features));
    if (comm.rank() == 0)
      std::cout << "epoch " << epoch << "  loss " << loss.value().item() << "  validation AUC " << valid
                << std::endl;
  }
  net.eval();
  const double test = auc(graph, data.book, split.test, evaluation, net(graph, data.features));
  if (comm.rank() == 0) std::cout << "test AUC " << test << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("link_prediction",
                       [&](const Communicator& comm) { return train(comm, argc > 1 ? argv[1] : nullptr); });
}
