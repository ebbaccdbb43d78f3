// SPDX-License-Identifier: MIT

/// Layer-neighbor sampling: its distribution, unbiased means, shared draws, the same blocks on every number
/// of ranks; and draws anew in each batch.
#include "drawn_edges.hpp"
#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace sar;
using namespace sar::test;
using namespace sar::test::sampling;

namespace {

NeighborSamplerOptions labor(std::uint64_t seed, bool redraw = false) {
  return {.method = NeighborMethod::labor, .redraw = redraw, .seed = seed};
}

/// `hubs` nodes with in-edges from each of the same `leaves` nodes; several edges from leaf 0 if wanted.
Graph hubs(const Communicator& self, Index count, Index leaves, Index copies_of_first = 1) {
  EdgeList edges;
  for (Index hub = 0; hub < count; ++hub)
    for (Index leaf = 0; leaf < leaves; ++leaf)
      for (Index copy = 0; copy < (leaf == 0 ? copies_of_first : 1); ++copy) {
        edges.src.push_back(count + leaf);
        edges.dst.push_back(hub);
        edges.id.push_back(std::ssize(edges.id));
      }
  const PartitionBook book = PartitionBook::even(count + leaves, 1);
  return {self, book, book, std::move(edges), true};
}

double binomial(int n, int k, double p) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) * std::pow(p, k) *
         std::pow(1 - p, n - k);
}

}  // namespace

TEST_CASE("LABOR keeps each edge with probability k / d by itself, and one edge at least") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const int leaves = 12, fan_out = 4, epochs = 6000;
  const double p = static_cast<double>(fan_out) / leaves;
  const NeighborSampler sampler(star(ranks.self, leaves), {fan_out}, labor(3));
  std::vector<double> of_edge(leaves, 0), of_size(9, 0), expected(9, 0);
  const Index seeds[] = {0};
  double pairs = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto blocks = sampler.sample_blocks(seeds, static_cast<std::uint64_t>(epoch));
    for (const Index e : blocks[0].edge_ids()) ++of_edge[static_cast<std::size_t>(e)];
    ++of_size[static_cast<std::size_t>(std::min<Index>(blocks[0].num_edges(), 8))];
    const std::set<Index> kept(blocks[0].edge_ids().begin(), blocks[0].edge_ids().end());
    pairs += kept.contains(2) && kept.contains(7) ? 1 : 0;
  }
  const double none = binomial(leaves, 0, p);
  for (int k = 1; k <= leaves; ++k)
    expected[static_cast<std::size_t>(std::min(k, 8))] += epochs * binomial(leaves, k, p);
  expected[1] += epochs * none;
  CHECK(of_size[0] == 0);
  of_size.erase(of_size.begin());
  expected.erase(expected.begin());
  CHECK(std::abs(chi_square(of_size, expected, 7)) < 4);
  const double mean = epochs * (p + none / leaves);
  CHECK(std::abs(chi_square(of_edge, std::vector<double>(leaves, mean), leaves * (1 - p))) < 4);
  CHECK(std::abs(pairs - epochs * p * p) < 5 * std::sqrt(epochs * p * p));  // edges are independent
}

TEST_CASE("the mean over the edges that LABOR keeps is unbiased, also with parallel edges") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  for (const Index copies : {Index{1}, Index{3}})
    for (const Index fan_out : {Index{1}, Index{3}}) {
      CAPTURE(copies);
      CAPTURE(fan_out);
      const Graph graph = hubs(ranks.self, 1, 9, copies);
      const NeighborSampler sampler(graph, {fan_out}, labor(5));
      const auto value = [](Index leaf) { return leaf == 0 ? 10.0 : static_cast<double>(leaf); };
      double want = 10.0 * static_cast<double>(copies - 1);
      for (Index leaf = 0; leaf < 9; ++leaf) want += value(leaf);
      want /= static_cast<double>(8 + copies);
      const int epochs = 6000;
      double sum = 0, squares = 0;
      const Index seeds[] = {0};
      for (int epoch = 0; epoch < epochs; ++epoch) {
        const auto blocks = sampler.sample_blocks(seeds, static_cast<std::uint64_t>(epoch));
        double mean = 0;
        for (const Index e : blocks[0].edge_ids()) mean += value(std::max<Index>(0, e - (copies - 1)));
        mean /= static_cast<double>(blocks[0].num_edges());
        sum += mean;
        squares += mean * mean;
      }
      const double mean = sum / epochs, deviation = std::sqrt((squares / epochs - mean * mean) / epochs);
      CHECK(std::abs(mean - want) < 4.5 * deviation);
    }
}

TEST_CASE("with LABOR, nodes of the same degree keep the same sources, so that a layer reads fewer rows") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = hubs(ranks.self, 20, 100);
  std::vector<Index> seeds(20);
  std::iota(seeds.begin(), seeds.end(), Index{0});
  const auto shared = NeighborSampler(graph, {10}, labor(2)).sample_blocks(seeds, 1);
  const auto single = NeighborSampler(graph, {10}, {.seed = 2}).sample_blocks(seeds, 1);
  const Index kept = shared[0].num_edges() / 20;
  CHECK(shared[0].num_edges() == 20 * kept);
  CHECK(shared[0].num_src_nodes() == 20 + kept);
  CHECK(single[0].num_src_nodes() > 20 + 50);
}

TEST_CASE("LABOR draws the same blocks on every number of ranks and threads") {
  const Ranks ranks;
  const Communicator &comm = ranks.world, &self = ranks.self;
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size())) {
      CAPTURE(whole.name);
      const std::vector<Index> fan_outs{2, -1, 3};
      const PartitionBook one = PartitionBook::even(whole.num_src, 1);
      const Graph alone = renamed_shard(self, whole, one);
      const Graph graph = renamed_shard(comm, whole, books.src);
      const auto want = NeighborSampler(alone, fan_outs, labor(3)).sample_blocks(seeds_of(one, 0), 4);
      const NeighborSampler sampler(graph, fan_outs, labor(3));
      for (const int threads : {1, 2}) {
        const ThreadLimit limit(threads);
        const auto got = sampler.sample_blocks(seeds_of(books.src, comm.rank()), 4);
        for (std::size_t l = 0; l < 3; ++l) {
          CHECK(edges_of(comm, got[l]) == edges_of(self, want[l]));
          CHECK(got[l].num_global_src_nodes() == want[l].num_src_nodes());
          for (Index i = 0; i < got[l].num_dst_nodes(); ++i) {
            const Index all = graph.in_degrees()[got[l].dst_rows()[i]], kept = got[l].in_degrees()[i];
            CHECK(kept <= all);
            if (fan_outs[l] < 0 || all <= fan_outs[l]) CHECK(kept == all);
            if (all > 0) CHECK(kept > 0);
          }
        }
      }
    }
}

TEST_CASE("LABOR leaves out excluded edges, and has fan-outs of types") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = star(ranks.self, 8);
  const Index excluded[] = {2, 5};
  const std::vector<double> seen = draws(NeighborSampler(graph, {2}, labor(9)), 8, 4000, excluded);
  CHECK(seen[2] + seen[5] == 0);
  const double each = 4000 * (2 / 6.0 + binomial(6, 0, 2 / 6.0) / 6);
  for (const Index e : {0, 1, 3, 4, 6, 7})
    CHECK(std::abs(seen[static_cast<std::size_t>(e)] - each) < 5 * std::sqrt(each));
  CHECK(NeighborSampler(graph, {2}, labor(9))
            .sample_blocks(std::vector<Index>{0}, 1, std::vector<Index>{0, 1, 2, 3, 4, 5})[0]
            .num_edges() == 2);  // what is left
  const EdgeTypes types(Array<std::uint16_t>{0, 0, 0, 0, 1, 1, 1, 1});
  const auto block =
      NeighborSampler(graph, {{0, -1}}, types, labor(9)).sample_blocks(std::vector<Index>{0}, 1).front();
  CHECK(std::vector<Index>(block.edge_ids().begin(), block.edge_ids().end()) ==
        std::vector<Index>{4, 5, 6, 7});
}

TEST_CASE("a node has the same neighbors in all batches of an epoch, or draws anew in each") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = star(ranks.self, 1000);
  const Index seeds[] = {0};
  for (const NeighborMethod method : {NeighborMethod::uniform, NeighborMethod::labor}) {
    const auto edges = [&](bool redraw, std::uint64_t epoch, Index batch) {
      const NeighborSampler sampler(graph, {20}, {.method = method, .redraw = redraw, .seed = 1});
      const auto blocks = sampler.sample_blocks(seeds, epoch, {}, batch);
      return std::vector<Index>(blocks[0].edge_ids().begin(), blocks[0].edge_ids().end());
    };
    CHECK(edges(false, 1, 0) == edges(false, 1, 3));
    CHECK(edges(true, 1, 0) == edges(false, 1, 0));
    CHECK(edges(true, 1, 3) == edges(true, 1, 3));
    CHECK(edges(true, 1, 3) != edges(true, 1, 0));
    CHECK(edges(true, 1, 3) != edges(true, 2, 3));
    CHECK(edges(true, 1, 3) != edges(true, 4, 0));
  }
  DataLoader loader(NeighborSampler(hubs(ranks.self, 2, 200), {5}, {.redraw = true, .seed = 1}),
                    std::vector<Index>{0, 1}, {.batch_size = 1, .shuffle = false});
  loader.start_epoch(1);
  const auto first = loader.next(), second = loader.next();
  NeighborSampler as_second(hubs(ranks.self, 2, 200), {5}, {.redraw = true, .seed = 1});
  const auto want = as_second.sample_blocks(std::vector<Index>{1}, 1, {}, 1);
  CHECK(std::ranges::equal(second->blocks[0].edge_ids(), want[0].edge_ids()));
}

TEST_CASE("what LABOR does not do is one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const auto text = [&](const NeighborSamplerOptions& options) {
    return thrown_by_all<InputError>(comm, [&] { NeighborSampler(graph, {5}, options); });
  };
  const auto has = [](const std::string& whole_text, const char* part) {
    return whole_text.find(part) != std::string::npos;
  };
  CHECK(has(text({.method = NeighborMethod::labor, .replace = true}), "expected replace = false"));
  CHECK(has(text({.method = NeighborMethod::labor, .prob = Tensor::full({graph.num_edges()}, 1)}),
            "expected no prob"));
  if (comm.size() > 1) {
    CHECK(has(text({.method = comm.rank() == 1 ? NeighborMethod::labor : NeighborMethod::uniform}),
              "a different method on different ranks"));
    CHECK(has(text({.redraw = comm.rank() == 1}), "a different redraw on different ranks"));
  }
  const NeighborSampler sampler(graph, {3});
  CHECK(has(thrown_by_all<InputError>(
                comm, [&] { (void)sampler.sample_blocks(std::span<const Index>(), 0, {}, -1); }),
            "number -1"));
}
