// SPDX-License-Identifier: MIT

/// Mini-batches of edges: their ends, their negatives, and what is left out of message passing.
#include "graph/test_graphs.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/data_loader.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace sar;
using namespace sar::test;

namespace {

/// Every second edge, on the rank that k mod P says: not that of its ends.
SeedEdges seed_edges(const Communicator& comm, const WholeGraph& g) {
  SeedEdges edges;
  for (std::size_t k = 0; k < g.src.size(); k += 2) {
    if (static_cast<int>(k / 2) % comm.size() != comm.rank()) continue;
    edges.src.push_back(g.src[k]);
    edges.dst.push_back(g.dst[k]);
    edges.id.push_back(static_cast<Index>(k));
  }
  return edges;
}

struct Pair {
  Index src, dst;
  auto operator<=>(const Pair&) const = default;
};

/// The nodes of the pairs, read along NodePairs from the rows of the last block: a row is the node's id.
std::vector<Pair> pairs_of(const NodePairs& pairs, const MessageFlowGraph& last, const PartitionBook& book,
                           int rank) {
  Tensor ids({last.num_dst_nodes(), 1});
  for (Index i = 0; i < last.num_dst_nodes(); ++i)
    ids.data()[i] = static_cast<real>(book.begin(rank) + last.dst_rows()[i]);
  const Tensor src = pairs.src(ids).value(), dst = pairs.dst(ids).value();
  std::vector<Pair> found;
  for (Index i = 0; i < pairs.num_pairs(); ++i)
    found.push_back({static_cast<Index>(src.data()[i]), static_cast<Index>(dst.data()[i])});
  return found;
}

template <class T>
std::vector<T> of_all(const Communicator& comm, const std::vector<T>& mine) {
  std::vector<T> all = comm.all_gather(std::span<const T>(mine));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("batches of edges have their ends, and the same negatives for every number of ranks") {
  const Communicator comm = Communicator::world();
  const Communicator self = Communicator::self();
  const WholeGraph whole = random_graph("random", 60, 60, 200, 1);
  const PartitionBook one = PartitionBook::even(60, 1);
  for (const Books& books : test_books(whole, comm.size()))
    for (const Negatives negatives : {Negatives::none, Negatives::per_source, Negatives::global}) {
      const EdgeDataLoaderOptions options{
          .batches = {.batch_size = 13, .seed = 4}, .negatives = negatives, .negative = {.k = 3, .seed = 5}};
      const SeedEdges mine = seed_edges(comm, whole), all = seed_edges(self, whole);
      EdgeDataLoader loader(NeighborSampler(shard(comm, whole, books, {}), {2, 3}), mine, options);
      EdgeDataLoader alone(NeighborSampler(shard(self, whole, {one, one}, {}), {2, 3}), all, options);
      CHECK(loader.num_edges() == all.size());
      REQUIRE(loader.num_batches() == (all.size() + 12) / 13);
      loader.start_epoch(2);
      alone.start_epoch(2);
      std::vector<Index> seen;
      for (Index b = 0; b < loader.num_batches(); ++b) {
        const auto got = loader.next(), want = alone.next();
        REQUIRE((got && want));
        std::vector<Pair> expected;
        for (const Index i : got->positions) {
          expected.push_back({mine.src[i], mine.dst[i]});
          seen.push_back(mine.id[i]);
        }
        CHECK(pairs_of(*got->positive, got->blocks.back(), books.src, comm.rank()) == expected);
        const auto all_pairs = [&](const Communicator& c, const EdgeMiniBatch& batch, bool positive,
                                   const PartitionBook& book) {
          return of_all(
              c, pairs_of(positive ? *batch.positive : *batch.negative, batch.blocks.back(), book, c.rank()));
        };
        CHECK(all_pairs(comm, *got, true, books.src) == all_pairs(self, *want, true, one));
        CHECK(got->negative.has_value() == (negatives != Negatives::none));
        if (got->negative) {
          CHECK(got->negative->num_pairs() == 3 * std::ssize(got->positions));
          CHECK(all_pairs(comm, *got, false, books.src) == all_pairs(self, *want, false, one));
          if (negatives == Negatives::per_source) {
            const auto drawn = pairs_of(*got->negative, got->blocks.back(), books.src, comm.rank());
            for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(drawn[i].src == expected[i / 3].src);
          }
        }
        CHECK(got->blocks[0].num_global_edges() == want->blocks[0].num_global_edges());
        CHECK(got->blocks[1].num_global_dst_nodes() == want->blocks[1].num_global_dst_nodes());
      }
      CHECK(!loader.next().has_value());
      CHECK(of_all(comm, seen) == std::vector<Index>(all.id.begin(), all.id.end()));
    }
}

TEST_CASE("negative pairs that the caller draws") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 200, 1);
  const SeedEdges mine = seed_edges(comm, whole);
  const auto back = [&](std::span<const Index> positions, std::uint64_t epoch) {
    CHECK(epoch == 3);
    NodePairList pairs;
    for (const Index i : positions) {
      if (i % 2 == 1) continue;
      pairs.src.push_back(mine.dst[i]);
      pairs.dst.push_back(mine.src[i]);
    }
    return pairs;
  };
  for (const Books& books : test_books(whole, comm.size())) {
    EdgeDataLoader loader(NeighborSampler(shard(comm, whole, books, {}), {2}), mine,
                          {.batches = {.batch_size = 13}, .draw = back});
    loader.start_epoch(3);
    while (const auto got = loader.next()) {
      std::vector<Pair> expected;
      for (const Index i : got->positions)
        if (i % 2 == 0) expected.push_back({mine.dst[i], mine.src[i]});
      CHECK(pairs_of(*got->negative, got->blocks.back(), books.src, comm.rank()) == expected);
    }
  }
}

TEST_CASE("another epoch has other negatives and other neighbors for the same edges") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 400, 1);
  const Books books = test_books(whole, comm.size()).front();
  for (const Negatives negatives : {Negatives::none, Negatives::per_source, Negatives::global}) {
    EdgeDataLoader loader(
        NeighborSampler(shard(comm, whole, books, {}), {2}), seed_edges(comm, whole),
        {.batches = {.batch_size = 50, .shuffle = false}, .negatives = negatives, .negative = {.k = 3}});
    const auto drawn_in = [&](std::uint64_t epoch) {
      loader.start_epoch(epoch);
      const auto batch = loader.next();
      const MessageFlowGraph& last = batch->blocks.back();
      if (batch->negative) return of_all(comm, pairs_of(*batch->negative, last, books.src, comm.rank()));
      std::vector<Pair> edges;
      for (const Index id : last.edge_ids()) edges.push_back({id, id});
      return of_all(comm, edges);
    };
    CHECK(drawn_in(1) == drawn_in(1));
    CHECK(drawn_in(1) != drawn_in(2));
  }
}

TEST_CASE("edges of the batch, and their reverses, pass no messages") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("random", 60, 60, 200, 1);
  for (const Books& books : test_books(whole, comm.size()))
    for (const ExcludeEdges exclude : {ExcludeEdges::none, ExcludeEdges::self, ExcludeEdges::reverse}) {
      const SeedEdges mine = seed_edges(comm, whole);
      EdgeDataLoader loader(NeighborSampler(shard(comm, whole, books, {}), {-1, -1}), mine,
                            {.batches = {.batch_size = 15}, .exclude = exclude});
      loader.start_epoch(1);
      while (const auto batch = loader.next()) {
        std::vector<Pair> asked;
        for (const Index i : batch->positions) asked.push_back({mine.src[i], mine.dst[i]});
        asked = of_all(comm, asked);
        std::set<Pair> out;
        if (exclude != ExcludeEdges::none) out.insert(asked.begin(), asked.end());
        if (exclude == ExcludeEdges::reverse)
          for (const Pair& pair : asked) out.insert({pair.dst, pair.src});
        // All in-edges of the destinations but those, and nothing else.
        for (const MessageFlowGraph& block : batch->blocks) {
          std::vector<Index> dst;
          for (const Index row : block.dst_rows()) dst.push_back(books.src.begin(comm.rank()) + row);
          const std::set<Index> wanted = [&] {
            const auto all = of_all(comm, dst);
            return std::set<Index>(all.begin(), all.end());
          }();
          std::vector<Index> expected;
          for (std::size_t k = 0; k < whole.src.size(); ++k)
            if (wanted.contains(whole.dst[k]) && !out.contains({whole.src[k], whole.dst[k]}))
              expected.push_back(static_cast<Index>(k));
          CHECK(of_all(comm, std::vector<Index>(block.edge_ids().begin(), block.edge_ids().end())) ==
                expected);
        }
      }
    }
}

TEST_CASE("no edges at all, and bad input") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole{"no edges", 12, 12, true, {}, {}};
  const Graph graph = shard(comm, whole, test_books(whole, comm.size()).front(), {});
  const NeighborSampler sampler(graph, {2});
  EdgeDataLoader none(sampler, {}, {.exclude = ExcludeEdges::reverse, .negatives = Negatives::global});
  CHECK(none.num_batches() == 0);
  CHECK(!none.next().has_value());
  // an edge to be predicted need not be in the graph
  SeedEdges edges;
  if (comm.rank() == comm.size() - 1) edges = {.src = {0}, .dst = {11}, .id = {0}};
  EdgeDataLoader one(sampler, edges, {.exclude = ExcludeEdges::reverse, .negatives = Negatives::per_source});
  const auto batch = one.next();
  REQUIRE(batch.has_value());
  CHECK(batch->blocks[0].num_global_edges() == 0);
  const auto text = [&](SeedEdges wrong) {
    return thrown_by_all<InputError>(comm, [&] { EdgeDataLoader(sampler, std::move(wrong)); });
  };
  CHECK(text({.src = {0}, .dst = {12}, .id = {3}}) ==
        "seed edge 3 has the end 12, expected a node from 0 to 11");
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          EdgeDataLoader(sampler, {.src = {0}, .dst = {}, .id = {3}});
        }) == "seed edges have 1 sources, 0 destinations and 1 ids");
}
