// SPDX-License-Identifier: MIT
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/sampling/negative_sampler.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Global id g is the node with the original id (step g + 1) % nodes: nodes of a rank are spread.
struct Numbering {
  Index nodes, step;
  [[nodiscard]] Index original(Index global) const { return (step * global + 1) % nodes; }
  [[nodiscard]] Array<Index> originals(const PartitionBook& book, int rank) const {
    Array<Index> ids;
    for (Index g = book.begin(rank); g < book.end(rank); ++g) ids.push_back(original(g));
    return ids;
  }
};

/// The edges (u, 3 u) and (u, u + 1) between original ids, of the destinations of this rank.
EdgeList edges_of(const Numbering& numbering, const PartitionBook& book, int rank) {
  const Index n = numbering.nodes;
  std::map<Index, Index> global;
  for (Index g = 0; g < n; ++g) global[numbering.original(g)] = g;
  EdgeList edges;
  for (Index u = 0; u < n; ++u)
    for (Index j = 0; j < 2; ++j) {
      const Index v = j == 0 ? 3 * u % n : (u + 1) % n;
      if (book.owner(global[v]) != rank) continue;
      edges.src.push_back(global[u]);
      edges.dst.push_back(global[v]);
      edges.id.push_back(2 * u + j);
    }
  return edges;
}

bool is_edge(const Numbering& numbering, Index src, Index dst) {
  const Index u = numbering.original(src), v = numbering.original(dst);
  return v == 3 * u % numbering.nodes || v == (u + 1) % numbering.nodes;
}

struct Setting {
  Communicator world = Communicator::world();
  Numbering numbering;
  PartitionBook book;
  EdgeList edges;
  std::shared_ptr<const EdgeSet> set;
  Graph graph;

  Setting(Index nodes, Index step, const PartitionBook& nodes_of)
      : numbering{nodes, step},
        book(nodes_of),
        edges(edges_of(numbering, book, world.rank())),
        set(std::make_shared<EdgeSet>(world, book, edges)),
        graph(world, book, book, edges, true, {}, numbering.originals(book, world.rank()),
              numbering.originals(book, world.rank())) {}

  /// (edge, number of the pair) and the original ids of the pair, of all ranks.
  [[nodiscard]] std::set<std::tuple<Index, Index, Index, Index>> all(const NodePairList& pairs,
                                                                     Index k) const {
    REQUIRE(pairs.size() == edges.size() * k);
    std::vector<std::array<Index, 4>> mine;
    for (Index i = 0; i < pairs.size(); ++i)
      mine.push_back(
          {edges.id[i / k], i % k, numbering.original(pairs.src[i]), numbering.original(pairs.dst[i])});
    std::set<std::tuple<Index, Index, Index, Index>> result;
    for (const auto& [e, j, u, v] : world.all_gather(std::span<const std::array<Index, 4>>(mine)))
      result.insert({e, j, u, v});
    return result;
  }
};

}  // namespace

TEST_CASE("pairs of an edge do not depend on the ranks or the partition") {
  const Communicator world = Communicator::world();
  const Index n = 23, k = 3;
  std::vector<std::set<std::tuple<Index, Index, Index, Index>>> seen;
  // the same draws: every step and every partition, and the numbers that one rank computes
  const Random random({7, 0x6e656761, 5});
  for (const Index step : {1, 5, 11})
    for (const PartitionBook& book : row_splits(n, world.size())) {
      const Setting s(n, step, book);
      const NegativeSampler sampler(s.graph, {.k = k, .seed = 7});
      const NodePairList own = sampler.per_source(s.edges.src, s.edges.id, 5);
      for (Index i = 0; i < own.size(); ++i) {
        CHECK(own.src[i] == s.edges.src[i / k]);
        const auto row = static_cast<std::uint64_t>(s.edges.id[i / k]);
        CHECK(s.numbering.original(own.dst[i]) ==
              static_cast<Index>(random.uniform(row, 2 * static_cast<std::uint64_t>(i % k)) *
                                 static_cast<double>(n)));
      }
      seen.push_back(s.all(sampler.global_uniform(s.edges.id, 5), k));
      CHECK(seen.back() == seen.front());
      CHECK(seen.back().size() == static_cast<std::size_t>(2 * n * k));
      CHECK(s.all(sampler.global_uniform(s.edges.id, 6), k) != seen.front());
    }
}

TEST_CASE("original ids may be any: their order counts") {
  const Communicator world = Communicator::world();
  const Index n = 23;
  for (const PartitionBook& book : row_splits(n, world.size())) {
    const Setting s(n, 5, book);
    Array<Index> ids = s.numbering.originals(book, world.rank());
    for (Index& id : ids) id = id * id * 1000000007 + 90;
    const Graph sparse(world, book, book, s.edges, true, {}, ids, ids);
    const NodePairList want = NegativeSampler(s.graph, {.k = 3}).global_uniform(s.edges.id, 2);
    const NodePairList got = NegativeSampler(sparse, {.k = 3}).global_uniform(s.edges.id, 2);
    CHECK(got.src == want.src);
    CHECK(got.dst == want.dst);
  }
}

TEST_CASE("a pair that is drawn again takes numbers of its own") {
  const Communicator world = Communicator::world();
  const Index n = 5, k = 6;
  const Random random({7, 0x6e656761, 2});
  for (const PartitionBook& book : row_splits(n, world.size())) {
    const Setting s(n, 3, book);
    const NegativeSampler sampler(s.graph, {.k = k, .seed = 7, .exclude_self_loops = true});
    const NodePairList pairs = sampler.per_source(s.edges.src, s.edges.id, 2);
    for (Index i = 0; i < pairs.size(); ++i) {
      const Index source = s.numbering.original(s.edges.src[i / k]);
      Index expected = source;
      for (Index number = i % k; expected == source; number += k)
        expected = static_cast<Index>(random.uniform(static_cast<std::uint64_t>(s.edges.id[i / k]),
                                                     2 * static_cast<std::uint64_t>(number)) *
                                      static_cast<double>(n));
      CHECK(s.numbering.original(pairs.dst[i]) == expected);
    }
  }
}

TEST_CASE("another end of an edge with a relation is a node that may be this end, the same on any ranks") {
  const Communicator world = Communicator::world();
  const Index n = 23, k = 40;
  // by original ids; sources of relation 1 are node 4 alone
  const std::vector<RelationEnds> ends{{0, 10, 10, 23}, {4, 5, 0, 23}};
  std::vector<std::set<std::tuple<Index, Index, Index, Index>>> seen;
  for (const Index step : {1, 5})
    for (const PartitionBook& book : row_splits(n, world.size())) {
      const Setting s(n, step, book);
      Array<Index> rels;
      for (const Index id : s.edges.id) rels.push_back(id % 2);
      const NegativeSampler sampler(s.graph, {.k = k, .seed = 7});
      const NodePairList pairs = sampler.replaced_end(s.edges.src, s.edges.dst, rels, s.edges.id, ends, 5);
      Index new_src = 0;
      for (Index i = 0; i < pairs.size(); ++i) {
        const Index edge = i / k;
        const Index u = s.numbering.original(pairs.src[i]), v = s.numbering.original(pairs.dst[i]);
        const RelationEnds& of = ends[static_cast<std::size_t>(rels[edge])];
        const bool same_src = pairs.src[i] == s.edges.src[edge], same_dst = pairs.dst[i] == s.edges.dst[edge];
        CHECK((same_src || same_dst));
        CHECK((same_src || (of.src_begin <= u && u < of.src_end)));
        CHECK((same_dst || (of.dst_begin <= v && v < of.dst_end)));
        new_src += same_src ? 0 : 1;
      }
      new_src = world.all_reduce(new_src);  // of 1840; some draws give the same source again
      CHECK(new_src > 700);
      CHECK(new_src < 1000);
      seen.push_back(s.all(pairs, k));
      CHECK(seen.back() == seen.front());
    }
}

TEST_CASE("edges and self loops are left out on demand") {
  const Communicator world = Communicator::world();
  std::vector<std::set<std::tuple<Index, Index, Index, Index>>> seen;
  for (const PartitionBook& book : row_splits(9, world.size())) {
    const Setting s(9, 4, book);
    const NegativeSampler sampler(s.graph, {.k = 4, .exclude_self_loops = true, .exclude_edges = s.set});
    const NodePairList own = sampler.per_source(s.edges.src, s.edges.id, 0);
    const NodePairList global = sampler.global_uniform(s.edges.id, 0);
    for (const NodePairList* pairs : {&own, &global})
      for (Index i = 0; i < pairs->size(); ++i) {
        CHECK(pairs->src[i] != pairs->dst[i]);
        CHECK_FALSE(is_edge(s.numbering, pairs->src[i], pairs->dst[i]));
      }
    seen.push_back(s.all(own, 4));
    CHECK(seen.back() == seen.front());
  }
}

TEST_CASE(
    "destinations are uniform") {  // chi-square, 22 degrees of freedom: above 48.3 with probability 0.001
  const Communicator world = Communicator::world();
  const Setting s(23, 5, PartitionBook::even(23, world.size()));
  const NegativeSampler sampler(s.graph, {.k = 50, .seed = 1});
  std::vector<std::int64_t> of_src(23, 0), of_dst(23, 0);
  const NodePairList pairs = sampler.global_uniform(s.edges.id, 0);
  for (const Index u : pairs.src) ++of_src[static_cast<std::size_t>(u)];
  for (const Index v : pairs.dst) ++of_dst[static_cast<std::size_t>(v)];
  for (std::vector<std::int64_t>* counts : {&of_src, &of_dst}) {
    world.all_reduce(std::span<std::int64_t>(*counts));
    double chi = 0;
    for (const std::int64_t count : *counts) chi += (count - 100.0) * (count - 100.0) / 100.0;
    CHECK(chi < 48.3);
  }
}

TEST_CASE("sets of edges answer for all ranks") {
  const Communicator world = Communicator::world();
  for (const PartitionBook& book : row_splits(9, world.size())) {
    const Setting s(9, 2, book);
    std::vector<Index> src, dst;
    for (Index i = 0; i < 81 && world.rank() != 1; ++i) {
      src.push_back(i / 9);
      dst.push_back(i % 9);
    }
    const Array<std::uint8_t> found = s.set->contains(src, dst);
    for (Index i = 0; i < std::ssize(found); ++i)
      CHECK((found[i] == 1) ==
            is_edge(s.numbering, src[static_cast<std::size_t>(i)], dst[static_cast<std::size_t>(i)]));
  }
}

TEST_CASE(
    "negatives go from sources to destinations of edges, in a bipartite graph from one side to the other") {
  const Communicator world = Communicator::world();
  const Index n = 29, users = 9, k = 40;  // items are 10 to 27; 9 and 28 have no edges
  std::vector<std::set<std::tuple<Index, Index, Index, Index>>> seen;
  for (const Index step : {1, 5})
    for (const PartitionBook& book : row_splits(n, world.size()))
      for (const bool both_ways : {false, true}) {
        const Setting s(n, step, book);
        std::map<Index, Index> global;
        for (Index g = 0; g < n; ++g) global[s.numbering.original(g)] = g;
        Array<Index> src, dst, ids;  // dealt to the ranks one by one
        for (Index u = 0, e = 0; u < users; ++u)
          for (Index j = 0; j < 2; ++j)
            for (Index way = 0; way < (both_ways ? 2 : 1); ++way, ++e) {
              if (e % world.size() != world.rank()) continue;
              const Index item = 10 + (2 * u + j);
              src.push_back(global[way == 0 ? u : item]);
              dst.push_back(global[way == 0 ? item : u]);
              ids.push_back(e);
            }
        const Array<Index> originals = s.numbering.originals(book, world.rank());
        const auto candidates =
            std::make_shared<const PairCandidates>(candidates_of_edges(world, book, originals, src, dst));
        CHECK(candidates->describe() ==
              (both_ways
                   ? "9 sources and 18 destinations, and 18 sources and 9 destinations the other way, a "
                     "bipartite graph"
                   : "9 sources and 18 destinations, a bipartite graph"));
        const NegativeSampler sampler(s.graph, {.k = k, .seed = 3, .candidates = candidates});
        const auto is_user = [&](Index node) { return s.numbering.original(node) < users; };
        const auto is_item = [&](Index node) {
          return s.numbering.original(node) >= 10 && s.numbering.original(node) < 28;
        };
        const NodePairList any = sampler.global_uniform(ids, 1);
        Index from_users = 0;
        for (Index i = 0; i < any.size(); ++i) {
          from_users += is_user(any.src[i]) ? 1 : 0;
          CHECK(((is_user(any.src[i]) && is_item(any.dst[i])) ||
                 (both_ways && is_item(any.src[i]) && is_user(any.dst[i]))));
        }
        const Index all = world.all_reduce(any.size());
        from_users = world.all_reduce(from_users);
        CHECK((both_ways ? 4 * from_users > all && 4 * from_users < 3 * all : from_users == all));
        const NodePairList own = sampler.per_source(src, ids, 1);
        for (Index i = 0; i < own.size(); ++i) {
          CHECK(own.src[i] == src[i / k]);
          CHECK((is_user(own.src[i]) ? is_item(own.dst[i]) : is_user(own.dst[i])));
        }
        CHECK(thrown_by_all<InputError>(world, [&] {
                (void)sampler.replaced_end(src, dst, Array<Index>(src.size(), 0), ids,
                                           std::vector<RelationEnds>{{0, n, 0, n}}, 1);
              }) == "NegativeSampler::replaced_end draws from the ends of relations, expected no candidates");
        std::set<std::tuple<Index, Index, Index, Index>> pairs;
        std::vector<std::array<Index, 4>> mine;
        for (Index i = 0; i < any.size(); ++i)
          mine.push_back(
              {ids[i / k], i % k, s.numbering.original(any.src[i]), s.numbering.original(any.dst[i])});
        for (const auto& [e, j, u, v] : world.all_gather(std::span<const std::array<Index, 4>>(mine)))
          pairs.insert({e, j, u, v});
        seen.push_back(pairs);
        if (seen.size() > 2) CHECK(pairs == seen[seen.size() - 3]);
      }
}

TEST_CASE("the sides of a bipartite graph are found whatever its ids, and odd cycles are not bipartite") {
  const Communicator world = Communicator::world();
  const Index n = 61;
  for (const PartitionBook& book : row_splits(n, world.size())) {
    const Setting s(n, 17, book);
    const Array<Index> originals = s.numbering.originals(book, world.rank());
    // a cycle of this length, a path of 40 nodes behind it, both ways, and an edge (60, 59); dealt to the
    // ranks
    const auto candidates = [&](Index cycle) {
      Array<Index> src, dst;
      Index e = 0;
      const auto add = [&](Index u, Index v) {
        if (e++ % world.size() != world.rank()) return;
        src.push_back(u);
        dst.push_back(v);
      };
      for (Index v = 0; v < cycle; ++v) add(v, (v + 1) % cycle), add((v + 1) % cycle, v);
      for (Index v = cycle; v < cycle + 39; ++v) add(v, v + 1), add(v + 1, v);
      add(60, 59);
      return candidates_of_edges(world, book, originals, src, dst);
    };
    const PairCandidates found = candidates(8);
    REQUIRE(found.is_bipartite);
    REQUIRE(found.ways.size() == 2);
    CHECK(found.ways[0].num_edges + found.ways[1].num_edges == 95);
    std::vector<std::array<Index, 4>> mine;
    for (Index v = 0; v < book.num_nodes(world.rank()); ++v)
      mine.push_back(
          {found.ways[0].src[v], found.ways[0].dst[v], found.ways[1].src[v], found.ways[1].dst[v]});
    const auto all = world.all_gather(std::span<const std::array<Index, 4>>(mine));
    const std::array<Index, 4> first{1, 0, 0, 1}, second{0, 1, 1, 0};
    // the side of the smallest original id of a component is the first
    const auto smallest = [&](Index begin, Index end) {
      Index least = begin;
      for (Index v = begin; v < end; ++v)
        if (s.numbering.original(v) < s.numbering.original(least)) least = v;
      return least;
    };
    const Index of_cycle = smallest(0, 8), of_path = smallest(8, 48);
    for (Index v = 0; v < 48; ++v) {
      CAPTURE(v);
      CHECK(all[v] == ((v - (v < 8 ? of_cycle : of_path)) % 2 == 0 ? first : second));
    }
    for (Index v = 48; v < 59; ++v) CHECK(all[v] == std::array<Index, 4>{});
    const bool forward = s.numbering.original(60) < s.numbering.original(59);
    CHECK(all[60] == std::array<Index, 4>{forward ? 1 : 0, 0, forward ? 0 : 1, 0});
    CHECK(all[59] == std::array<Index, 4>{0, forward ? 1 : 0, 0, forward ? 0 : 1});
    for (const Index odd : {3, 7, 15}) {
      const PairCandidates others = candidates(odd);
      CHECK(!others.is_bipartite);
      CHECK(others.ways.size() == 1);
    }
  }
}

TEST_CASE("a graph that is not bipartite has candidates without a side") {
  const Communicator world = Communicator::world();
  const Setting s(7, 3, PartitionBook::even(7, world.size()));
  const Array<Index> ids = s.numbering.originals(s.book, world.rank());
  const auto describe = [&](std::vector<Index> src, std::vector<Index> dst) {
    if (world.rank() > 0) src.clear(), dst.clear();
    return candidates_of_edges(world, s.book, ids, src, dst).describe();
  };
  CHECK(describe({0, 1, 2, 5}, {1, 2, 0, 5}) ==
        "3 sources and 3 destinations");  // a self loop does not count
  CHECK(describe({}, {}) == "0 sources and 0 destinations");
  CHECK(thrown_by_all<InputError>(world, [&] { (void)describe({0}, {7}); }) ==
        "candidates_of_edges: there is no node 7, expected 0 to 6");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          const Array<Index> none;
          (void)candidates_of_edges(world, s.book, none, none, none);
        }).starts_with("candidates_of_edges: 0 original ids for "));
}

TEST_CASE("between two sets of nodes") {
  const Communicator world = Communicator::world();
  const PartitionBook users = PartitionBook::even(3, world.size()),
                      items = PartitionBook::even(40, world.size());
  const Graph graph(world, users, items, {}, false);
  const NegativeSampler sampler(graph, {.k = 60, .exclude_self_loops = true});
  const std::vector<Index> id{world.rank()};
  const NodePairList pairs = sampler.global_uniform(id, 0);
  CHECK(std::set<Index>(pairs.src.begin(), pairs.src.end()) == std::set<Index>{0, 1, 2});
  CHECK(*std::max_element(pairs.dst.begin(), pairs.dst.end()) > 20);
}

TEST_CASE("negatives: what is wrong on one rank is an error on all") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const Setting s(4, 1, PartitionBook::even(4, world.size()));
  const auto text = [&](const std::function<void()>& action) {
    return thrown_by_all<InputError>(world, action);
  };
  CHECK(text([&] { const NegativeSampler sampler(s.graph, {.k = last ? 0 : 1}); }) ==
        "NegativeSampler: k is 0, expected 1 or more");
  const NegativeSampler sampler(s.graph);
  const std::vector<Index> id{0}, none;
  CHECK(thrown_by_all<ShapeError>(world, [&] { (void)sampler.per_source(last ? none : id, id, 0); }) ==
        "NegativeSampler: 1 ids of edges for 0 sources");
  const std::vector<RelationEnds> ends{{0, 4, 0, 4}};
  const auto replaced = [&](Index rel, const std::vector<RelationEnds>& of) {
    return text([&] { (void)sampler.replaced_end(id, id, std::vector<Index>{rel}, id, of, 0); });
  };
  CHECK(replaced(1, ends) == "NegativeSampler: relation 1, expected 0 to 0");
  CHECK(replaced(0, {{0, 4, 2, 5}}) ==
        "NegativeSampler: nodes 2 to 5 as the ends of a relation, there are 4");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)sampler.replaced_end(id, id, last ? none : id, id, ends, 0);
        }) == "NegativeSampler: 1 ids of edges for 1 sources, 1 destinations and 0 relations");
  // node 0 has edges to all nodes
  EdgeList full;
  for (Index v = s.book.begin(world.rank()); v < s.book.end(world.rank()); ++v) {
    full.src.push_back(0);
    full.dst.push_back(v);
    full.id.push_back(v);
  }
  const auto all = std::make_shared<EdgeSet>(world, s.book, full);
  const NegativeSampler excluding(s.graph, {.exclude_edges = all});
  CHECK(text([&] { (void)excluding.per_source(last ? id : none, last ? id : none, 0); }) ==
        "NegativeSampler: 10000 pairs drawn for edge 0 are all edges or self loops, which are excluded");
  CHECK(text([&] { (void)all->contains(id, std::vector<Index>{last ? 4 : 0}); }) ==
        "EdgeSet: destination 4, expected a node from 0 to 3");
  EdgeList uneven = full;
  if (last) uneven.dst.push_back(0);
  CHECK(thrown_by_all<ShapeError>(world, [&] { EdgeSet(world, s.book, uneven); }) ==
        concat("EdgeSet: ", s.book.num_nodes(world.size() - 1) + 1, " destinations for ",
               s.book.num_nodes(world.size() - 1), " sources"));
  CHECK(text([&] { EdgeSet(world, PartitionBook::even(4, world.size() + 1), full); }) ==
        concat("EdgeSet: a partition book of ", world.size() + 1, " ranks, expected ", world.size(),
               ", as the communicator has"));
  if (last) full.dst[0] = -1;
  CHECK_THROWS_AS(EdgeSet(world, s.book, full), InputError);
  const auto with_ids = [&](Index all_nodes) {
    const Array<Index> ids(static_cast<std::size_t>(s.book.num_nodes(world.rank())), all_nodes);
    const Graph other(world, s.book, s.book, {}, true, {}, ids, ids);
    return text([&] { const NegativeSampler negatives(other); });
  };
  CHECK(with_ids(7) ==
        "NegativeSampler, original ids of the destinations: 7 occurs twice, expected each id once");
  CHECK(with_ids(-7) == "NegativeSampler, original ids of the destinations: id -7, expected 0 or more");
}
