// SPDX-License-Identifier: MIT

/// A knowledge graph is trained on embeddings alone, with negatives of the right types, and ranked.
#include "support/reference.hpp"
#include "support/rows.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index items = 60, groups = 12;

/// Items on a ring: `next` is one step, `skip` is next after next, and each item is in a group of neighbors.
/// Global id g of an item is the original id (step g + 1) % items.
Graph ring(const Communicator& comm, Index step, const PartitionBook& of_items,
           const PartitionBook& of_groups) {
  Array<Index> ids;
  std::vector<Index> global(items);
  for (Index g = 0; g < items; ++g) {
    const Index original = (step * g + 1) % items;
    global[static_cast<std::size_t>(original)] = g;
    if (of_items.owner(g) == comm.rank()) ids.push_back(original);
  }
  EdgeList next, skip, in;
  const auto add = [&](EdgeList& to, const PartitionBook& book, Index src, Index dst, Index id) {
    if (book.owner(dst) != comm.rank()) return;
    to.src.push_back(src);
    to.dst.push_back(dst);
    to.id.push_back(id);
  };
  for (Index i = 0; i < items; ++i) {
    const auto item = [&](Index at) { return global[static_cast<std::size_t>(at % items)]; };
    add(next, of_items, item(i), item(i + 1), i);
    add(skip, of_items, item(i), item(i + 2), i);
    add(in, of_groups, item(i), i / (items / groups), i);
  }
  return {
      comm,
      {{.name = "item", .book = of_items, .ids = ids}, {.name = "group", .book = of_groups}},
      {{{"item", "next", "item"}, next}, {{"item", "skip", "item"}, skip}, {{"item", "in", "group"}, in}}};
}

/// Every fifth edge of `skip` is for the test: what it says follows from two edges of `next`.
struct KnowledgeGraph {
  Graph graph;
  const HomogeneousForm& form = graph.to_homogeneous();
  RelationEdges all = relation_edges(form), train, test;
  Array<Index> train_ids;

  explicit KnowledgeGraph(Graph whole) : graph(std::move(whole)) {
    for (Index e = 0; e < all.size(); ++e) {
      const Index id = form.graph.edge_ids()[e];
      const bool held_out = all.rels[e] == 1 && (id - form.first_edge_id[1]) % 5 == 0;
      RelationEdges& to = held_out ? test : train;
      to.src.push_back(all.src[e]);
      to.rels.push_back(all.rels[e]);
      to.dst.push_back(all.dst[e]);
      if (!held_out) train_ids.push_back(id);
    }
  }
};

struct Curve {
  std::vector<double> losses;
  RankMetrics before, after;
};

/// Scores of embeddings alone; each edge against k others of the right types.
Curve train(const KnowledgeGraph& kg, RelationPredictor& predictor, Generator& gen, int epochs) {
  const Communicator& comm = kg.graph.comm();
  const Graph& graph = kg.form.graph;
  HeteroEmbedding embedding(kg.graph, kg.graph.node_types(), predictor.width(), gen);
  SparseAdam sparse(embedding.refs(), {.lr = 0.05});
  Adam optimizer(predictor.named_parameters(), {.lr = 0.05});
  const Index k = 4;
  const NegativeSampler sampler(graph, {.k = k, .seed = 3});
  const std::vector<RelationEnds> ends = relation_ends(kg.graph);
  const KnownEdges known(graph, kg.all);
  const PartitionBook book = [&] {
    std::vector<Index> offsets{0};
    for (const Index nodes : comm.all_gather(graph.num_nodes())) offsets.push_back(offsets.back() + nodes);
    return PartitionBook(offsets);
  }();
  const auto evaluate = [&] {
    const Tensor h = kg.form.concat(embedding()).value();
    return rank_metrics(filtered_ranks(predictor, graph, h, kg.test, known, relation_rows(kg.form)),
                        std::vector<Index>{1, 10}, comm);
  };
  Array<Index> repeated;
  for (const Index rel : kg.train.rels) repeated.insert(repeated.end(), static_cast<std::size_t>(k), rel);
  const NodePairs positive(comm, book, kg.train.src, kg.train.dst);
  Curve curve;
  {
    const NoTape no_tape;
    curve.before = evaluate();
  }
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const NodePairList drawn = sampler.replaced_end(kg.train.src, kg.train.dst, kg.train.rels, kg.train_ids,
                                                    ends, static_cast<std::uint64_t>(epoch));
    const NodePairs negative(comm, book, drawn.src, drawn.dst);
    Tape tape;
    const Variable h = kg.form.concat(embedding());
    const Variable loss = link_bce_with_logits(predictor(positive.src(h), positive.dst(h), kg.train.rels),
                                               predictor(negative.src(h), negative.dst(h), repeated), comm);
    tape.backward(loss);
    gather_grads(comm, predictor);
    optimizer.step();
    optimizer.zero_grad();
    sparse.step();
    sparse.zero_grad();
    curve.losses.push_back(static_cast<double>(loss.value().item()));
  }
  const NoTape no_tape;
  curve.after = evaluate();
  return curve;
}

template <class Predictor, class... Options>
void check_training(double least_mrr, int epochs, const Options&... options) {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const auto run = [&](Graph graph) {
    Generator gen(1);
    Predictor predictor(3, 16, gen, options...);
    return train(KnowledgeGraph(std::move(graph)), predictor, gen, epochs);
  };
  const Curve expected = run(ring(self, 1, PartitionBook::even(items, 1), PartitionBook::even(groups, 1)));
  CHECK(expected.before.mrr < 0.1);  // 0.08 is the mean of 1 / rank over 60 ranks
  CHECK(expected.after.mrr > least_mrr);
  CHECK(expected.after.mean_rank < expected.before.mean_rank / 2);
  for (const PartitionBook& of_items : row_splits(items, world.size())) {
    const Curve found = run(ring(world, 7, of_items, PartitionBook::even(groups, world.size())));
    CHECK(found.before.mrr == expected.before.mrr);
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(found.losses[i] - expected.losses[i]) < tolerance() * expected.losses[i]);
    }
    CHECK(found.after.mrr == doctest::Approx(expected.after.mrr).epsilon(1e-2));
  }
}

}  // namespace

TEST_CASE("the edges of a homogeneous form have the global ids of their ends") {
  const Communicator world = Communicator::world();
  for (const PartitionBook& of_items : row_splits(items, world.size())) {
    const KnowledgeGraph kg(ring(world, 7, of_items, PartitionBook::even(groups, world.size())));
    CHECK(world.all_reduce(kg.all.size()) == 3 * items);
    const std::vector<Index> ids = world.all_gather(std::span<const Index>(kg.form.graph.dst_ids()));
    const std::vector<RelationEnds> ends = relation_ends(kg.graph);
    for (Index e = 0; e < kg.all.size(); ++e) {
      const Index src = ids[static_cast<std::size_t>(kg.all.src[e])];
      const Index dst = ids[static_cast<std::size_t>(kg.all.dst[e])], rel = kg.all.rels[e];
      CHECK(kg.form.graph.edge_ids()[e] == rel * items + src);
      CHECK(dst == (rel == 2 ? items + src / (items / groups) : (src + rel + 1) % items));
      CHECK((ends[static_cast<std::size_t>(rel)].dst_begin == (rel == 2 ? items : 0)));
    }
  }
}

TEST_CASE("what is held out of a knowledge graph is found, the same on any ranks") {
  check_training<RotatEPredictor>(0.7, 100, real{6});
  check_training<ComplExPredictor>(0.25, 60);
}
