// SPDX-License-Identifier: MIT

/// Sampled neighbors: their distribution, the same draws for every number of ranks, and what is left out.
#include "drawn_edges.hpp"
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

using namespace sar;
using namespace sar::test;
using namespace sar::test::sampling;

namespace {

Tensor probabilities(const Graph& graph) {
  Tensor prob({graph.num_edges()});
  for (Index e = 0; e < graph.num_edges(); ++e)
    prob.data()[e] = static_cast<real>((graph.edge_ids()[e] * 7) % 5);
  return prob;
}

constexpr Index num_types = 3;

EdgeTypes types_by_id(const Graph& graph) {
  Array<std::uint16_t> types;
  for (const Index id : graph.edge_ids()) types.push_back(static_cast<std::uint16_t>(id % num_types));
  return EdgeTypes(std::move(types));
}

/// In-edges of each type at each destination: number_of[destination][type].
std::vector<std::array<Index, num_types>> count_types(const Graph& graph) {
  std::vector<std::array<Index, num_types>> number_of(static_cast<std::size_t>(graph.num_dst_nodes()));
  for (const GraphShard* shard : {&graph.topology().local, &graph.topology().remote})
    for (Index i = 0; i < shard->num_rows(); ++i)
      for (Index k = shard->row_begin[i]; k < shard->row_begin[i + 1]; ++k)
        ++number_of[static_cast<std::size_t>(shard->dst_row(i))]
                   [static_cast<std::size_t>(graph.edge_ids()[shard->edge(k)] % num_types)];
  return number_of;
}

}  // namespace

TEST_CASE("neighbors drawn without replacement are uniform") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  {  // every set of 3 of 6 leaves alike
    const Graph graph = star(ranks.self, 6);
    const NeighborSampler sampler(graph, {3}, {.seed = 4});
    std::vector<double> seen(64, 0);
    const Index seeds[] = {0};
    const int epochs = 8000;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      std::size_t set = 0;
      const auto blocks = sampler.sample_blocks(seeds, static_cast<std::uint64_t>(epoch));
      for (const Index e : blocks[0].edge_ids()) set |= std::size_t{1} << e;
      ++seen[set];
    }
    std::vector<double> of_three;
    for (std::size_t set = 0; set < 64; ++set) {
      if (std::popcount(set) == 3)
        of_three.push_back(seen[set]);
      else
        CHECK(seen[set] == 0);
    }
    REQUIRE(of_three.size() == 20);
    CHECK(std::abs(chi_square(of_three, std::vector<double>(20, epochs / 20.0), 19)) < 4);
  }
  {  // every tenth of the in-edges of a hub of 10^6 alike, by the search and by marks
    const Index leaves = 1000000;
    const Graph graph = star(ranks.self, leaves);
    for (const Index fan_out : {Index{50}, Index{2000}}) {
      const NeighborSampler sampler(graph, {fan_out}, {.seed = 5});
      std::vector<double> tenths(10, 0);
      const Index seeds[] = {0};
      Index drawn = 0;
      for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
        const auto blocks = sampler.sample_blocks(seeds, epoch);
        std::vector<Index> ids(blocks[0].edge_ids().begin(), blocks[0].edge_ids().end());
        std::sort(ids.begin(), ids.end());
        CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
        for (const Index e : ids) ++tenths[static_cast<std::size_t>(e / (leaves / 10))];
        drawn += std::ssize(ids);
      }
      REQUIRE(drawn == 20 * fan_out);
      CHECK(std::abs(chi_square(tenths, std::vector<double>(10, static_cast<double>(drawn) / 10), 9)) < 4);
    }
  }
}

TEST_CASE("neighbors drawn with replacement are independent and uniform") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = star(ranks.self, 10);
  const std::vector<double> seen =
      draws(NeighborSampler(graph, {20}, {.replace = true, .seed = 6}), 10, 1000);
  CHECK(std::accumulate(seen.begin(), seen.end(), 0.0) == 20000);
  CHECK(std::abs(chi_square(seen, std::vector<double>(10, 2000), 9)) < 4);
}

TEST_CASE("weighted draws follow the probabilities") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Index leaves = 8;
  const Graph graph = star(ranks.self, leaves);
  Tensor prob({leaves});
  double sum = 0;
  for (Index e = 0; e < leaves; ++e) sum += prob.data()[e] = static_cast<real>(e);  // edge 0 never
  const double epochs = 10000;
  {  // one at a time
    for (const bool replace : {false, true}) {
      std::vector<double> seen =
          draws(NeighborSampler(graph, {1}, {.replace = replace, .prob = prob, .seed = 7}), leaves,
                static_cast<Index>(epochs));
      CHECK(seen[0] == 0);
      std::vector<double> expected;
      for (Index e = 1; e < leaves; ++e) expected.push_back(epochs * static_cast<double>(e) / sum);
      seen.erase(seen.begin());
      CHECK(std::abs(chi_square(seen, expected, 6)) < 4);
    }
  }
  {                                                                     // two one after the other
    std::vector<double> expected(static_cast<std::size_t>(leaves), 0);  // P(first) + P(second)
    for (Index a = 1; a < leaves; ++a)
      for (Index b = 1; b < leaves; ++b) {
        if (a == b) continue;
        const double p =
            static_cast<double>(a) / sum * static_cast<double>(b) / (sum - static_cast<double>(a));
        expected[static_cast<std::size_t>(a)] += p * epochs;
        expected[static_cast<std::size_t>(b)] += p * epochs;
      }
    const std::vector<double> seen =
        draws(NeighborSampler(graph, {2}, {.prob = prob, .seed = 8}), leaves, static_cast<Index>(epochs));
    for (std::size_t e = 0; e < seen.size(); ++e)  // 5 standard deviations at least
      CHECK(std::abs(seen[e] - expected[e]) <= 5 * std::sqrt(expected[e]));
  }
}

TEST_CASE("edges keep their probabilities where others are excluded") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = star(ranks.self, 8);
  Tensor prob({8});
  for (Index e = 0; e < 8; ++e) prob.data()[e] = static_cast<real>(e);
  const Index excluded[] = {2, 5}, kept[] = {1, 3, 4, 6, 7};  // edge rows are edge ids here
  for (const bool replace : {false, true}) {
    const NeighborSampler sampler(graph, {1}, {.replace = replace, .prob = prob, .seed = 9});
    const std::vector<double> all = draws(sampler, 8, 8000, excluded);
    std::vector<double> seen, expected;
    for (const Index e : kept) {
      seen.push_back(all[static_cast<std::size_t>(e)]);
      expected.push_back(8000 * static_cast<double>(e) / (1 + 3 + 4 + 6 + 7));
    }
    CHECK(std::accumulate(seen.begin(), seen.end(), 0.0) == 8000);
    CHECK(std::abs(chi_square(seen, expected, 4)) < 4);
  }
}

TEST_CASE("the same blocks on every number of ranks and threads, with at most fan-out many in-edges") {
  const Ranks ranks;
  const Communicator &comm = ranks.world, &self = ranks.self;
  const int p = comm.rank();
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (int choice = 0; choice < 4; ++choice) {
        CAPTURE(whole.name);
        CAPTURE(choice);
        const bool weighted = choice >= 2 && whole.src.size() > 2, replace = choice % 2 == 1;
        const std::vector<Index> fan_outs{2, -1, 3};
        const Graph alone = renamed_shard(self, whole, PartitionBook::even(whole.num_src, 1));
        const Graph graph = renamed_shard(comm, whole, books.src);
        const auto sampler_on = [&](const Graph& g) {
          return NeighborSampler(
              g, fan_outs, {.replace = replace, .prob = weighted ? probabilities(g) : Tensor(), .seed = 3});
        };
        const auto want = sampler_on(alone).sample_blocks(seeds_of(PartitionBook::even(whole.num_src, 1), 0),
                                                          static_cast<std::uint64_t>(choice));
        const NeighborSampler sampler = sampler_on(graph);
        for (const int threads : {1, 2}) {
          const ThreadLimit limit(threads);
          const auto got = sampler.sample_blocks(seeds_of(books.src, p), static_cast<std::uint64_t>(choice));
          REQUIRE(got.size() == 3);
          for (std::size_t l = 0; l < 3; ++l) {
            CHECK(edges_of(comm, got[l]) == edges_of(self, want[l]));
            CHECK(got[l].num_global_edges() == want[l].num_edges());
            CHECK(got[l].num_global_src_nodes() == want[l].num_src_nodes());
            const Index fan_out = fan_outs[l];
            for (Index i = 0; i < got[l].num_dst_nodes(); ++i) {
              const Index degree = got[l].in_degrees()[i];
              const Index all = graph.in_degrees()[got[l].dst_rows()[i]];
              if (fan_out >= 0) CHECK(degree <= fan_out);
              if (!weighted && fan_out < 0) CHECK(degree == all);
              if (!weighted && fan_out >= 0)
                CHECK(degree == (all == 0 ? 0 : replace ? fan_out : std::min(all, fan_out)));
            }
            if (l > 0) CHECK(got[l].src_rows().size() == got[l - 1].dst_rows().size());
          }
        }
      }
}

TEST_CASE("all in-edges are those of construct_mfgs") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph graph = renamed_shard(comm, whole, books.src);
    const std::vector<Index> seeds = seeds_of(books.src, comm.rank());
    const auto want = construct_mfgs(graph, seeds, 2);
    const auto got = NeighborSampler(graph, {-1, -1}).sample_blocks(seeds);
    for (std::size_t l = 0; l < 2; ++l) {
      CHECK(std::ranges::equal(got[l].edge_rows(), want[l].edge_rows()));
      CHECK(std::ranges::equal(got[l].src_rows(), want[l].src_rows()));
    }
  }
}

TEST_CASE("other epochs, seeds and layers draw other neighbors") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = star(ranks.self, 1000);
  const Index seeds[] = {0};
  const auto edges = [&](std::uint64_t seed, std::uint64_t epoch, std::size_t layer = 0) {
    const auto blocks = NeighborSampler(graph, {20, 20}, {.seed = seed}).sample_blocks(seeds, epoch);
    return std::vector<Index>(blocks[layer].edge_ids().begin(), blocks[layer].edge_ids().end());
  };
  REQUIRE(edges(1, 1, 1).size() == 20);
  CHECK(edges(1, 1) == edges(1, 1));
  CHECK(edges(1, 1) != edges(1, 2));
  CHECK(edges(1, 1) != edges(2, 1));
  CHECK(edges(1, 1, 0) != edges(1, 1, 1));
}

TEST_CASE("excluded edges are in no layer") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph graph = renamed_shard(comm, whole, books.src);
    const std::vector<Index> seeds = seeds_of(books.src, comm.rank());
    std::vector<Index> excluded;
    for (Index e = 0; e < graph.num_edges(); ++e)
      if (graph.edge_ids()[e] % 3 == 0) excluded.push_back(e);
    for (const Index fan_out : {Index{-1}, Index{2}}) {
      const NeighborSampler sampler(graph, {fan_out, fan_out});
      std::size_t kept = 0;
      const auto blocks = sampler.sample_blocks(seeds, 1, excluded);
      for (const MessageFlowGraph& block : blocks)
        for (const Index id : block.edge_ids()) {
          CHECK(id % 3 != 0);
          ++kept;
        }
      CHECK(comm.all_reduce(static_cast<Index>(kept)) > 0);
    }
    std::vector<Index> wrong{graph.num_edges()};
    CHECK(thrown_by_all<InputError>(comm, [&] {
            (void)NeighborSampler(graph, {1}).sample_blocks(seeds, 1, wrong);
          }).find("is no edge of this rank") != std::string::npos);
  }
}

TEST_CASE("each type of edge has its fan-out, and its draws are uniform") {
  const Ranks ranks;
  if (ranks.world.rank() > 0) return;
  const Graph graph = star(ranks.self, 30);
  const double epochs = 4000;
  for (const bool replace : {false, true}) {
    const NeighborSampler sampler(graph, {{2, 0, 4}}, types_by_id(graph), {.replace = replace, .seed = 10});
    const std::vector<double> seen = draws(sampler, 30, static_cast<Index>(epochs));
    std::vector<double> of_first, of_last;
    for (std::size_t e = 0; e < seen.size(); ++e) {
      if (e % num_types == 1) CHECK(seen[e] == 0);
      if (e % num_types == 0) of_first.push_back(seen[e]);
      if (e % num_types == 2) of_last.push_back(seen[e]);
    }
    CHECK(std::accumulate(of_first.begin(), of_first.end(), 0.0) == 2 * epochs);
    CHECK(std::accumulate(of_last.begin(), of_last.end(), 0.0) == 4 * epochs);
    CHECK(std::abs(chi_square(of_first, std::vector<double>(10, epochs * 2 / 10), 9)) < 4);
    CHECK(std::abs(chi_square(of_last, std::vector<double>(10, epochs * 4 / 10), 9)) < 4);
  }
}

TEST_CASE("fan-outs of types give the same blocks on every number of ranks and threads") {
  const Ranks ranks;
  const Communicator &comm = ranks.world, &self = ranks.self;
  const std::vector<std::vector<Index>> fan_outs{{1, 2, 0}, {-1, 0, 3}};
  for (const WholeGraph& whole : square_graphs())
    for (const Books& books : test_books(whole, comm.size()))
      for (int choice = 0; choice < 4; ++choice) {
        CAPTURE(whole.name);
        CAPTURE(choice);
        const bool weighted = choice >= 2 && whole.src.size() > 2, replace = choice % 2 == 1;
        const auto sample = [&](const Graph& g, const PartitionBook& book, int rank) {
          std::vector<Index> excluded;
          for (Index e = 0; e < g.num_edges(); ++e)
            if (g.edge_ids()[e] % 11 == 5) excluded.push_back(e);
          return NeighborSampler(
                     g, fan_outs, types_by_id(g),
                     {.replace = replace, .prob = weighted ? probabilities(g) : Tensor(), .seed = 3})
              .sample_blocks(seeds_of(book, rank), 5, excluded);
        };
        const PartitionBook one = PartitionBook::even(whole.num_src, 1);
        const auto want = sample(renamed_shard(self, whole, one), one, 0);
        const Graph graph = renamed_shard(comm, whole, books.src);
        const auto all = count_types(graph);
        for (const int threads : {1, 2}) {
          const ThreadLimit limit(threads);
          const auto got = sample(graph, books.src, comm.rank());
          REQUIRE(got.size() == 2);
          for (std::size_t l = 0; l < 2; ++l) {
            CHECK(edges_of(comm, got[l]) == edges_of(self, want[l]));
            const auto drawn = count_types(got[l]);
            for (std::size_t i = 0; i < drawn.size(); ++i)
              for (std::size_t t = 0; t < num_types; ++t) {
                const Index fan_out = fan_outs[l][t];
                const Index there =
                    all[static_cast<std::size_t>(got[l].dst_rows()[static_cast<Index>(i)])][t];
                if (fan_out >= 0) CHECK(drawn[i][t] <= fan_out);
                if (!replace || fan_out <= 0) CHECK(drawn[i][t] <= there);
              }
          }
        }
      }
}

TEST_CASE("all edges of one type are drawn as without types") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  for (const Books& books : test_books(whole, comm.size())) {
    const Graph graph = renamed_shard(comm, whole, books.src);
    const std::vector<Index> seeds = seeds_of(books.src, comm.rank());
    const EdgeTypes one(Array<std::uint16_t>(static_cast<std::size_t>(graph.num_edges()), 0));
    const auto want = NeighborSampler(graph, {2, 3}, {.seed = 2}).sample_blocks(seeds, 7);
    const auto got = NeighborSampler(graph, {{2}, {3}}, one, {.seed = 2}).sample_blocks(seeds, 7);
    for (std::size_t l = 0; l < 2; ++l) {
      CHECK(std::ranges::equal(got[l].edge_rows(), want[l].edge_rows()));
      CHECK(std::ranges::equal(got[l].src_rows(), want[l].src_rows()));
    }
  }
}

TEST_CASE("wrong fan-outs of types are one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const EdgeTypes types = types_by_id(graph);
  const auto text = [&](const std::vector<std::vector<Index>>& fan_outs) {
    return thrown_by_all<InputError>(comm, [&] { NeighborSampler(graph, fan_outs, types); });
  };
  const auto has = [](const std::string& whole_text, const char* part) {
    return whole_text.find(part) != std::string::npos;
  };
  CHECK(has(text({}), "there are no fan-outs"));
  CHECK(has(text({{}}), "a layer has 0 fan-outs"));
  CHECK(has(text({{1, 2, 3}, {1, 2}}), "a layer has 2 fan-outs, expected one for each type of edge, 3 as"));
  CHECK(has(text({{1, 2, -3}}), "a fan-out is -3"));
  CHECK(has(text({{1, 2}}), "NeighborSampler got the edge type 2, there are 2"));
  CHECK(has(thrown_by_all<ShapeError>(
                comm, [&] { NeighborSampler(graph, {{1}}, EdgeTypes(Array<std::uint16_t>(999))); }),
            "got 999 edge types for"));
  if (comm.size() > 1)
    CHECK(has(text({{1, comm.rank() == 1 ? Index{1} : Index{2}, 3}}), "a different fan-out"));
}

TEST_CASE("bad input is one sentence on all ranks") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Graph graph = renamed_shard(comm, whole, PartitionBook::even(60, comm.size()));
  const auto text = [&](std::vector<Index> fan_outs, const NeighborSamplerOptions& options = {}) {
    return thrown_by_all<InputError>(comm, [&] { NeighborSampler(graph, std::move(fan_outs), options); });
  };
  const auto has = [](const std::string& whole_text, const char* part) {
    return whole_text.find(part) != std::string::npos;
  };
  CHECK(has(text({}), "there are no fan-outs"));
  CHECK(has(text({5, -2}), "a fan-out is -2"));
  if (comm.size() > 1) {
    const auto differ = [&](std::vector<Index> of_rank_1, const NeighborSamplerOptions& options = {}) {
      return comm.rank() == 1 ? text(std::move(of_rank_1), options) : text({5});
    };
    CHECK(has(differ({4}), "a different fan-out on different ranks"));
    CHECK(has(differ({5, 5}), "a different number of fan-outs on different ranks"));
    CHECK(has(differ({5}, {.replace = true}), "a different replace on different ranks"));
    CHECK(has(differ({5}, {.seed = 1}), "a different seed on different ranks"));
  }
  Tensor prob = Tensor::zeros({graph.num_edges()});
  CHECK(has(text({5}, {.prob = prob}), "the probabilities of all edges are 0"));
  CHECK(has(text({5}, {.prob = Tensor::zeros({graph.num_edges() + 1})}), "probabilities for"));
  if (comm.rank() == comm.size() - 1) prob.data()[0] = -1;
  CHECK(has(text({5}, {.prob = prob}), "is -1, expected 0 or more"));
  const NeighborSampler sampler(graph, {3});
  const Index none[] = {comm.rank() == 0 ? Index{60} : Index{-1}};
  CHECK(has(thrown_by_all<InputError>(comm, [&] { (void)sampler.sample_blocks(none); }), "is no node"));
  CHECK(sampler.sample_blocks(std::vector<Index>()).size() == 1);  // the communicator can be used afterwards
}
