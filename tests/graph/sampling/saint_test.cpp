// SPDX-License-Identifier: MIT

/// Subgraphs of GraphSAINT: their distribution, unbiased sums, PyG's coefficients, the same on every number
/// of ranks.
#include "drawn_edges.hpp"
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/sampling/saint_loader.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

using namespace sar;
using namespace sar::test;
using namespace sar::test::sampling;

namespace {

constexpr SaintMethod methods[] = {SaintMethod::node, SaintMethod::edge, SaintMethod::walk};

SaintOptions small(SaintMethod method) {
  return {.method = method, .draws = 6, .walk_length = 2, .batches = 4, .coverage = 1, .seed = 5};
}

/// Values of all ranks by original id.
template <class ValueOf>
std::map<Index, double> by_id(const Communicator& comm, const Array<Index>& ids, const ValueOf& value_of) {
  std::vector<double> pairs;
  for (Index i = 0; i < std::ssize(ids); ++i) {
    pairs.push_back(static_cast<double>(ids[i]));
    pairs.push_back(static_cast<double>(value_of(i)));
  }
  pairs = comm.all_gather(std::span<const double>(pairs));
  std::map<Index, double> values;
  for (std::size_t i = 0; i < pairs.size(); i += 2) values[static_cast<Index>(pairs[i])] = pairs[i + 1];
  return values;
}

/// A graph of 10 nodes with loops and parallel edges; node 9 is isolated.
const std::vector<std::array<Index, 2>> small_edges = {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 2}, {3, 0},
                                                       {0, 3}, {4, 0}, {0, 4}, {5, 0}, {0, 5}, {5, 6}, {6, 7},
                                                       {7, 8}, {8, 6}, {6, 6}, {1, 4}, {1, 4}, {7, 0}};

Graph small_graph(const Communicator& comm) {
  const PartitionBook book = PartitionBook::even(10, comm.size());
  EdgeList edges;
  for (std::size_t e = 0; e < small_edges.size(); ++e)
    if (book.owner(small_edges[e][1]) == comm.rank()) {
      edges.src.push_back(small_edges[e][0]);
      edges.dst.push_back(small_edges[e][1]);
      edges.id.push_back(static_cast<Index>(e));
    }
  return {comm, book, book, std::move(edges), true};
}

std::vector<std::set<Index>> subgraphs(SaintLoader& loader, const Communicator& comm, std::uint64_t epoch,
                                       Index count) {
  std::vector<std::set<Index>> sets;
  loader.start_epoch(epoch);
  for (Index i = 0; i < count; ++i) {
    const auto batch = loader.next();
    const Array<Index>& ids = batch->graph.dst_ids();
    const auto all = comm.all_gather(std::span<const Index>(ids.data(), ids.size()));
    sets.emplace_back(all.begin(), all.end());
  }
  return sets;
}

}  // namespace

TEST_CASE("subgraphs, edge weights and loss weights are the same on every number of ranks") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (const SaintMethod method : methods)
        for (const bool scaled : {true, false}) {
          CAPTURE(whole.name);
          CAPTURE(static_cast<int>(method));
          const PartitionBook one = PartitionBook::even(whole.num_src, 1);
          const Graph graph = renamed_shard(comm, whole, books.src, {}, true);
          const Graph alone = renamed_shard(ranks.self, whole, one, {}, true);
          SaintOptions options = small(method);
          options.scale_messages = scaled;
          SaintLoader loader(graph, options), want(alone, options);
          CHECK(loader.num_counted() == want.num_counted());
          loader.start_epoch(2);
          want.start_epoch(2);
          while (const auto batch = loader.next()) {
            const auto expected = want.next();
            REQUIRE(expected);
            const MessageFlowGraph &got = batch->graph, &wanted = expected->graph;
            const auto weights = [](const SaintBatch& of) {
              return [&](Index i) { return of.loss_weights.data()[i]; };
            };
            const auto nodes = by_id(ranks.self, wanted.dst_ids(), weights(*expected));
            CHECK(by_id(comm, got.dst_ids(), weights(*batch)) == nodes);
            std::map<Index, Index> in, out;
            std::set<Index> between;
            for (std::size_t k = 0; k < whole.src.size(); ++k) {
              const Index u = original_id(whole.src[k]), v = original_id(whole.dst[k]);
              const bool is_in = nodes.contains(u) && nodes.contains(v);
              if (is_in) between.insert(static_cast<Index>(k));
              in[v] += is_in || scaled ? 1 : 0;
              out[u] += is_in || scaled ? 1 : 0;
            }
            const auto edge_weights = [](const MessageFlowGraph& of) {
              return [&](Index e) { return of.edge_weight().data()[e]; };
            };
            const auto edges = by_id(comm, got.edge_ids(), edge_weights(got));
            CHECK(edges == by_id(ranks.self, wanted.edge_ids(), edge_weights(wanted)));
            CHECK(edges.size() == between.size());
            for (const auto& [edge, weight] : edges) CHECK(between.contains(edge));
            for (Index e = 0; e < got.num_edges(); ++e) {
              const double factor = scaled ? 1 / loader.edge_probability(got.edge_rows()[e]) : 1;
              CHECK(
                  static_cast<double>(got.edge_weight().data()[e]) ==
                  doctest::Approx(factor * static_cast<double>(weight_of(got.edge_ids()[e]))).epsilon(1e-6));
            }
            for (Index i = 0; i < got.num_dst_nodes(); ++i) {
              CHECK(got.in_degrees()[i] == in[got.dst_ids()[i]]);
              CHECK(got.out_degrees()[i] == out[got.dst_ids()[i]]);
              CHECK(graph.dst_ids()[got.dst_rows()[i]] == got.dst_ids()[i]);
            }
          }
          CHECK(!want.next());
        }
}

TEST_CASE("subgraphs of many nodes are the same on every number of ranks") {
  constexpr Index n = 20000;  // more than a block of rows
  const Ranks ranks;
  const auto ring = [](const Communicator& comm) {
    const PartitionBook book = PartitionBook::even(n, comm.size());
    EdgeList edges;
    for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v)
      for (const Index u : {v * 7 % n, (v + 1) % n}) {
        edges.src.push_back(u);
        edges.dst.push_back(v);
        edges.id.push_back(2 * v + (u == (v + 1) % n ? 1 : 0));
      }
    return Graph(comm, book, book, std::move(edges), true);
  };
  for (const SaintMethod method : methods) {
    const SaintOptions options{.method = method, .draws = 2000, .walk_length = 2, .batches = 2, .seed = 5};
    SaintLoader loader(ring(ranks.world), options), alone(ring(ranks.self), options);
    const auto drawn = subgraphs(loader, ranks.world, 1, 2);
    CHECK(drawn == subgraphs(alone, ranks.self, 1, 2));
    CHECK(drawn[0].size() > 1500);
  }
}

TEST_CASE("nodes are drawn with the probabilities of the paper") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Communicator& comm = ranks.self;
  const Graph graph = small_graph(comm);
  const int batches = 4000;
  std::map<Index, double> in, out;
  for (const auto& [u, v] : small_edges) {
    ++out[u];
    ++in[v];
  }
  const auto drawn = [](double q, int n) { return 1 - std::pow(1 - q, n); };
  for (const SaintMethod method : methods) {
    CAPTURE(static_cast<int>(method));
    const int n = 3, steps = 2;
    SaintLoader loader(
        graph,
        {.method = method, .draws = n, .walk_length = steps, .batches = batches, .coverage = 1, .seed = 3});
    std::array<double, 10> seen{}, expected{};
    for (const std::set<Index>& nodes : subgraphs(loader, comm, 1, batches))
      for (const Index v : nodes) ++seen[static_cast<std::size_t>(v)];
    if (method == SaintMethod::node) {
      for (Index v = 0; v < 10; ++v)
        expected[static_cast<std::size_t>(v)] = drawn((out.contains(v) ? out[v] : 1) / 21, n);
    } else if (method == SaintMethod::edge) {
      std::array<double, 10> none;
      none.fill(1);
      for (const auto& [u, v] : small_edges) {
        const double p = drawn((1 / out[u] + 1 / in[v]) / static_cast<double>(in.size() + out.size()), n);
        none[static_cast<std::size_t>(u)] *= 1 - p;
        if (u != v) none[static_cast<std::size_t>(v)] *= 1 - p;
      }
      for (std::size_t v = 0; v < 10; ++v) expected[v] = 1 - none[v];
    } else {
      // reach[s][v]: the probability that a walk of s more steps from v visits the target
      for (Index target = 0; target < 10; ++target) {
        std::array<double, 10> reach{};
        for (int s = 0; s <= steps; ++s) {
          std::array<double, 10> next{};
          for (const auto& [u, v] : small_edges)
            if (s > 0) next[static_cast<std::size_t>(v)] += reach[static_cast<std::size_t>(u)] / in[v];
          next[static_cast<std::size_t>(target)] = 1;
          reach = next;
        }
        double none = 1;
        for (const double p : reach) none *= 1 - p * drawn(0.1, n);
        expected[static_cast<std::size_t>(target)] = 1 - none;
      }
    }
    for (std::size_t v = 0; v < 10; ++v) {
      CAPTURE(v);
      const double p = expected[v];
      CHECK(std::abs(seen[v] - batches * p) <= 4.5 * std::sqrt(batches * p * (1 - p)));
    }
  }
}

TEST_CASE("sums over the subgraphs that were counted are those of the whole graph") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  const Graph graph = small_graph(comm);
  Tensor x({graph.num_nodes(), 1});
  for (Index v = 0; v < graph.num_nodes(); ++v) x.data()[v] = static_cast<real>(1 + graph.dst_ids()[v] % 4);
  const Tensor whole = graph.update_all(fn::copy_u(Variable(x)), fn::mean).value();
  for (const SaintMethod method : {SaintMethod::edge, SaintMethod::walk}) {
    CAPTURE(static_cast<int>(method));
    SaintOptions options{.method = method, .draws = 4, .walk_length = 2, .coverage = 60, .seed = 2};
    options.batches = SaintLoader(graph, options).num_counted();
    SaintLoader loader(graph, options);
    REQUIRE(loader.num_counted() == options.batches);
    std::vector<double> sums(static_cast<std::size_t>(graph.num_nodes()), 0), counts = sums;
    double loss = 0;
    loader.start_epoch(0);
    while (const auto batch = loader.next()) {
      const MessageFlowGraph& part = batch->graph;
      const Variable rows = gather_rows(Variable(x), part.dst_rows());
      const Tensor y = part.update_all(fn::u_mul_e(rows, Variable(part.edge_weight())), fn::mean).value();
      for (Index i = 0; i < y.num_rows(); ++i) {
        sums[static_cast<std::size_t>(part.dst_rows()[i])] += static_cast<double>(y.data()[i]);
        counts[static_cast<std::size_t>(part.dst_rows()[i])] += 1;
        loss += static_cast<double>(batch->loss_weights.data()[i]) *
                static_cast<double>(part.dst_ids()[i] * part.dst_ids()[i]);
      }
    }
    for (Index v = 0; v < graph.num_nodes(); ++v)
      if (const double count = counts[static_cast<std::size_t>(v)]; count > 0)
        CHECK(sums[static_cast<std::size_t>(v)] / count ==
              doctest::Approx(static_cast<double>(whole.data()[v])).epsilon(1e-5));
    const double of_all = 285 - (method == SaintMethod::edge ? 81 : 0);  // node 9 has no edges
    CHECK(comm.all_reduce(loss) / static_cast<double>(options.batches) ==
          doctest::Approx(of_all).epsilon(1e-5));
  }
}

TEST_CASE("layers on new subgraphs are those of the whole graph in the mean") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Communicator& comm = ranks.self;
  const WholeGraph whole = random_graph("random", 30, 30, 150, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(30, comm.size()), {}, true);
  {  // sums of scaled weights are no sums of the whole graph's
    SaintLoader loader(graph, {.method = SaintMethod::node, .draws = 12, .batches = 1, .coverage = 50});
    loader.start_epoch(0);
    const auto batch = loader.next();
    CHECK(thrown<InputError>([&] {
            return kept_edge_weight_norm(batch->graph, EdgeNorm::both);
          }).starts_with("edge weights of a sample with scaled messages are normalized in the whole"));
  }
  (void)kept_edge_weight_norm(graph, EdgeNorm::both);
  Tensor x({graph.num_nodes(), 2});
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<real>(1 + graph.dst_ids()[i / 2] % 5 + i % 2);
  const int batches = 1500;
  for (const SaintMethod method : methods) {
    Generator gen(3);
    std::vector<std::function<Variable(const Graph&, const Variable&)>> layers;
    const GraphConv gcn(2, 1, gen, {.norm = GraphConvNorm::both}),
        weights(2, 1, gen, {.norm = GraphConvNorm::weights});
    SAGEConv mean(2, 1, gen), with_self(2, 1, gen, {.aggregator = SAGEAggregator::gcn});
    layers.push_back([&](const auto& g, const Variable& rows) { return gcn(g, rows, g.edge_weight()); });
    layers.push_back([&](const auto& g, const Variable& rows) { return weights(g, rows, g.edge_weight()); });
    layers.push_back(
        [&](const auto& g, const Variable& rows) { return mean(g, rows, Variable(g.edge_weight())); });
    layers.push_back(
        [&](const auto& g, const Variable& rows) { return with_self(g, rows, Variable(g.edge_weight())); });
    const SaintOptions options{
        .method = method, .draws = 12, .walk_length = 2, .batches = batches, .coverage = 1500, .seed = 7};
    SaintLoader loader(graph, options);
    loader.start_epoch(1);
    std::vector<std::map<Index, std::array<double, 3>>> sums(layers.size());  // of a row: count, sum, squares
    while (const auto batch = loader.next()) {
      const Variable rows = gather_rows(Variable(x), batch->graph.dst_rows());
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const Tensor y = layers[l](batch->graph, rows).value();
        for (Index i = 0; i < y.num_rows(); ++i) {
          const auto value = static_cast<double>(y.data()[i]);
          auto& [count, sum, squares] = sums[l][batch->graph.dst_rows()[i]];
          count += 1;
          sum += value;
          squares += value * value;
        }
      }
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Tensor want = layers[l](graph, Variable(x)).value();
      for (const auto& [row, of_row] : sums[l]) {
        const auto& [count, sum, squares] = of_row;
        if (count < 100) continue;
        const double mean_value = sum / count,
                     variance = std::max(squares / count - mean_value * mean_value, 0.0);
        CAPTURE(static_cast<int>(method));
        CAPTURE(l);
        CAPTURE(row);
        // counted coefficients have an error of the same size
        CHECK(std::abs(mean_value - static_cast<double>(want.data()[row])) <=
              6.5 * std::sqrt(variance / count) + 1e-4 * (1 + std::abs(mean_value)));
      }
    }
  }
}

TEST_CASE("coefficients are those of PyG for the same subgraphs") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  const Graph graph = small_graph(comm);
  for (const std::string name : {"edge", "walk"}) {
    CAPTURE(name);
    SaintOptions options{.method = name == "edge" ? SaintMethod::edge : SaintMethod::walk,
                         .draws = 2,
                         .walk_length = 2,
                         .coverage = 5,
                         .seed = 1};
    options.batches = SaintLoader(graph, options).num_counted();
    SaintLoader loader(graph, options);
    const auto sets = subgraphs(loader, comm, 0, options.batches);
    std::string text;
    for (const auto& set : sets) {
      for (const Index v : set) text += std::to_string(v);
      if (set.empty()) text += "-";
      text += " ";
    }
    CAPTURE(text);
    const Case golden("saint/" + name);
    const auto nodes = golden.indices("nodes"), begin = golden.indices("begin");
    REQUIRE(begin.size() == sets.size() + 1);
    for (std::size_t i = 0; i < sets.size(); ++i)
      CHECK(std::vector<Index>(sets[i].begin(), sets[i].end()) ==
            std::vector<Index>(nodes.begin() + begin[i], nodes.begin() + begin[i + 1]));
    const std::vector<double> node_norm = golden.values("node_norm"), edge_norm = golden.values("edge_norm");
    for (Index v = 0; v < graph.num_nodes(); ++v)
      if (const double norm = node_norm[static_cast<std::size_t>(graph.dst_ids()[v])]; norm > 0)
        CHECK(1 / loader.node_probability(v) / 10 == doctest::Approx(norm).epsilon(1e-6));
    for (Index e = 0; e < graph.num_edges(); ++e)
      if (const double norm = edge_norm[static_cast<std::size_t>(graph.edge_ids()[e])]; norm > 0)
        CHECK(1 / loader.edge_probability(e) == doctest::Approx(norm).epsilon(1e-6));
  }
}

TEST_CASE(
    "batches of an epoch: their number, other ones in each epoch, the same when resumed and on threads") {
  const Ranks ranks;
  const Communicator& comm = ranks.world;
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  CHECK(SaintLoader(graph, {.draws = 25}).num_batches() == 3);
  CHECK(SaintLoader(graph, {.method = SaintMethod::edge, .draws = 25}).num_batches() == 2);
  CHECK(SaintLoader(graph, {.method = SaintMethod::walk, .draws = 5, .walk_length = 3}).num_batches() == 3);
  for (const SaintMethod method : methods) {
    SaintLoader loader(graph, small(method));
    const auto first = subgraphs(loader, comm, 1, 4);
    CHECK(subgraphs(loader, comm, 1, 4) == first);
    CHECK(subgraphs(loader, comm, 2, 4) != first);
    CHECK(first[0] != first[1]);
    loader.start_epoch(1, 3);
    const auto batch = loader.next();
    CHECK(batch->number == 3);
    CHECK(comm.all_reduce(batch->graph.num_dst_nodes()) == std::ssize(first[3]));
    CHECK(!loader.next());
    const ThreadLimit threads(3);
    SaintLoader threaded(graph, small(method));
    CHECK(subgraphs(threaded, comm, 1, 4) == first);
  }
}

TEST_CASE("wrong options are one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const auto message = [&](const SaintOptions& options) {
    return thrown_by_all<InputError>(comm, [&] { SaintLoader(graph, options); });
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(message({.draws = 0}), "draws is 0, expected 1 or more"));
  CHECK(has(message({.walk_length = 0}), "walk_length is 0, expected 1 or more"));
  CHECK(has(message({.batches = -1}), "batches is -1, expected 0 or more"));
  CHECK(has(message({.coverage = 0}), "coverage is 0, expected 1 or more"));
  if (comm.size() > 1) CHECK(has(message({.draws = 5 + comm.rank()}), "different draws on different ranks"));
  SaintLoader loader(graph, {.draws = 20});
  CHECK(has(thrown_by_all<InputError>(comm, [&] { loader.start_epoch(1, 7); }), "there is no batch 7"));
  Graph without_ids = graph;
  without_ids.drop_edge_ids();
  CHECK(has(thrown_by_all<InputError>(
                comm, [&] { SaintLoader(without_ids, {.method = SaintMethod::walk, .draws = 2}); }),
            "drop_edge_ids"));
}
