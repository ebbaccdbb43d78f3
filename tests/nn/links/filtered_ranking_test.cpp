// SPDX-License-Identifier: MIT
#include "graph/hetero/typed_test_graph.hpp"
#include "support/effort.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/models/ranking.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Edges of two node types in rows 0 to 69 and 70 to 149: relation 0 from the first type to the second,
/// 1 within the second, 2 without edges. More rows than are scored at once, hubs, and equal rows.
struct Ranked {
  static constexpr Index nodes = 150, first_of_second = 70, width = 6;
  std::vector<std::tuple<Index, Index, Index>> edges;  // source, relation, destination
  Tensor h = random_values({nodes, width}, 5);

  Ranked() {
    const Random random({7, 1, 0});
    const auto draw = [&](std::uint64_t i, Index begin, Index end) {
      return begin + static_cast<Index>(random.uniform(i) * static_cast<double>(end - begin));
    };
    for (std::uint64_t i = 0; i < 60; ++i)
      edges.emplace_back(draw(2 * i, 0, 70), 0, i < 20 ? 71 : draw(2 * i + 1, 70, 150));
    for (std::uint64_t i = 60; i < 110; ++i)
      edges.emplace_back(i < 90 ? 80 : draw(2 * i, 70, 150), 1, draw(2 * i + 1, 70, 150));
    for (Index i = 70; i < 150; ++i) edges.emplace_back(80, 1, i);  // all are known, a self loop among them
    edges.push_back(edges[3]);                                      // twice
    for (const Index twin : {100, 120, 149}) std::copy_n(h.row(71), width, h.row(twin));  // equal scores
    std::copy_n(h.row(5), width, h.row(6));
  }

  [[nodiscard]] static std::pair<Index, Index> range(EdgeEnd end, Index rel) {
    if (rel == 0 && end == EdgeEnd::source) return {0, first_of_second};
    return {first_of_second, nodes};
  }

  /// By the scores of all pairs.
  [[nodiscard]] double rank(const RelationPredictor& predictor, EdgeEnd wanted, Index edge, bool typed,
                            bool filtered) const {
    const auto [src, rel, dst] = edges[static_cast<std::size_t>(edge)];
    const std::set<std::tuple<Index, Index, Index>> known(edges.begin(), edges.end());
    const bool to_dst = wanted == EdgeEnd::destination;
    const Index fixed = to_dst ? src : dst, own = to_dst ? dst : src;
    Tensor repeated({nodes, width});
    for (Index w = 0; w < nodes; ++w) std::copy_n(h.row(fixed), width, repeated.row(w));
    const Variable all(h), one(repeated);
    const Tensor scores =
        predictor(to_dst ? one : all, to_dst ? all : one, Array<Index>(static_cast<std::size_t>(nodes), rel))
            .value();
    const real target = scores.data()[own];
    double found = 1;
    const auto [begin, end] = typed ? range(wanted, rel) : std::pair(Index{0}, nodes);
    for (Index w = begin; w < end; ++w) {
      if (w == own || (filtered && known.contains({to_dst ? src : w, rel, to_dst ? w : dst}))) continue;
      const real other = scores.data()[w];
      found += other > target ? 1 : other == target ? 0.5 : 0;
    }
    return found;
  }

  /// The edges of this rank of a division of them.
  [[nodiscard]] RelationEdges part(const PartitionBook& book, int rank) const {
    RelationEdges mine;
    for (Index e = book.begin(rank); e < book.end(rank); ++e) {
      mine.src.push_back(std::get<0>(edges[static_cast<std::size_t>(e)]));
      mine.rels.push_back(std::get<1>(edges[static_cast<std::size_t>(e)]));
      mine.dst.push_back(std::get<2>(edges[static_cast<std::size_t>(e)]));
    }
    return mine;
  }
};

/// The local rows of each relation's ends.
std::vector<RelationRows> rows_of(const PartitionBook& nodes, int rank) {
  std::vector<RelationRows> rows;
  const auto local = [&](Index row) {
    return std::clamp(row, nodes.begin(rank), nodes.end(rank)) - nodes.begin(rank);
  };
  for (const Index rel : {0, 1, 2}) {
    const auto src = Ranked::range(EdgeEnd::source, rel), dst = Ranked::range(EdgeEnd::destination, rel);
    rows.push_back({local(src.first), local(src.second), local(dst.first), local(dst.second)});
  }
  return rows;
}

/// Ranks are those of the brute force, whichever ranks have the nodes and the edges.
void check_ranks(const RelationPredictor& predictor, bool typed, bool filtered) {
  const Communicator world = Communicator::world();
  const Ranked ranked;
  const int rank = world.rank();
  std::vector<double> dst_ranks, src_ranks;
  for (Index e = 0; e < std::ssize(ranked.edges); ++e) {
    dst_ranks.push_back(ranked.rank(predictor, EdgeEnd::destination, e, typed, filtered));
    src_ranks.push_back(ranked.rank(predictor, EdgeEnd::source, e, typed, filtered));
  }
  std::size_t number = 0;
  for (const PartitionBook& nodes : row_splits(Ranked::nodes, world.size()))
    for (const PartitionBook& of_edges :
         some_of(row_splits(std::ssize(ranked.edges), world.size()), number++ + (typed ? 1 : 0))) {
      const RelationEdges mine = ranked.part(of_edges, rank);
      const Graph graph(world, nodes, nodes, {}, true);
      const KnownEdges known(graph, filtered ? mine : RelationEdges());
      const FilteredRanks found =
          filtered_ranks(predictor, graph, my_rows(ranked.h, nodes, rank), mine, known,
                         typed ? rows_of(nodes, rank) : std::vector<RelationRows>());
      REQUIRE(std::ssize(found.of_sources) == mine.size());
      for (Index i = 0; i < mine.size(); ++i) {
        const auto e = static_cast<std::size_t>(of_edges.begin(rank) + i);
        CAPTURE(e);
        CHECK(found.of_destinations[i] == dst_ranks[e]);
        CHECK(found.of_sources[i] == src_ranks[e]);
      }
    }
}

}  // namespace

TEST_CASE("filtered ranks are those of all pairs, on any ranks") {
  Generator gen(2);
  const DistMultPredictor dist_mult(3, Ranked::width, gen);
  for (const bool typed : {false, true})
    for (const bool filtered : {false, true}) check_ranks(dist_mult, typed, filtered);
  check_ranks(ComplExPredictor(3, Ranked::width, gen), true, true);
  check_ranks(TransEPredictor(3, Ranked::width, gen), true, true);
  check_ranks(TransEPredictor(3, Ranked::width, gen, {.norm = 2}), false, true);
  check_ranks(RotatEPredictor(3, Ranked::width, gen), true, true);
}

TEST_CASE("metrics of ranks by hand") {
  const Communicator world = Communicator::world();
  FilteredRanks ranks;
  if (world.rank() == 0) ranks.of_destinations = {1, 2.5};
  if (world.rank() == world.size() - 1) ranks.of_sources = {10, 2.5};
  const RankMetrics found = rank_metrics(ranks, std::vector<Index>{1, 2, 3, 10}, world);
  CHECK(found.mrr == doctest::Approx((1 + 0.4 + 0.4 + 0.1) / 4).epsilon(1e-15));
  CHECK(found.mean_rank == 4);
  CHECK(found.hits == std::vector<double>{0.25, 0.25, 0.75, 1});
}

TEST_CASE("the rows of a relation's ends are those of its node types") {
  const Communicator world = Communicator::world();
  const TypedGraph typed = typed_graph();
  const Graph graph = shard(world, typed, typed_books(typed, world.size()).front());
  const std::vector<RelationRows> rows = relation_rows(graph.to_homogeneous());
  REQUIRE(rows.size() == graph.edge_types().size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const EdgeType& type = graph.edge_types()[r];
    CHECK(rows[r].src_end - rows[r].src_begin == graph.num_nodes(type.source));
    CHECK(rows[r].dst_end - rows[r].dst_begin == graph.num_nodes(type.destination));
  }
  const Index papers = graph.num_nodes("paper");  // the first type
  CHECK(rows[0].dst_begin == 0);
  CHECK(rows[0].src_begin == papers);
}

TEST_CASE("filtered ranks say what is wrong, on all ranks") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  Generator gen(0);
  const DistMultPredictor predictor(2, 3, gen);
  const PartitionBook book = PartitionBook::even(8, world.size());
  const Index mine = book.num_nodes(world.rank());
  const Graph graph(world, book, book, {}, true);
  const KnownEdges none(graph, {});
  const auto ranks = [&](const Tensor& h, const RelationEdges& edges) {
    (void)filtered_ranks(predictor, graph, h, edges, none);
  };
  const Tensor h = Tensor::zeros({mine, 3});
  CHECK(thrown_by_all<InputError>(world, [&] {
          ranks(h, last ? RelationEdges{{0}, {2}, {1}} : RelationEdges());
        }).ends_with("filtered_ranks: relation 2, expected 0 to 1"));
  CHECK(thrown_by_all<InputError>(world, [&] {
          ranks(h, last ? RelationEdges{{0}, {1}, {8}} : RelationEdges());
        }).ends_with("filtered_ranks: an edge has the end 8, expected a node from 0 to 7"));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          ranks(h, last ? RelationEdges{{0}, {1, 1}, {3}} : RelationEdges());
        }).ends_with("filtered_ranks: 1 sources, 2 relations and 1 destinations, expected as many of each"));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          ranks(Tensor::zeros({mine, 4}), {});
        }).find("filtered_ranks: representations have shape [") != std::string::npos);
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)KnownEdges(graph, last ? RelationEdges{{-1}, {1}, {3}} : RelationEdges());
        }).ends_with("KnownEdges: an edge has the end -1, expected a node from 0 to 7"));
  const Tensor nan = Tensor::full({mine, 3}, std::numeric_limits<real>::quiet_NaN());
  CHECK(thrown_by_all<InputError>(world, [&] { ranks(nan, {{0}, {1}, {7}}); }).ends_with("is NaN"));
  CHECK(thrown_by_all<InputError>(world, [&] { (void)rank_metrics({}, std::vector<Index>{1}, world); }) ==
        "rank_metrics: no rank has the rank of an edge");
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)rank_metrics({{1}, {}}, std::vector<Index>{0}, world);
        }) == "rank_metrics: K is 0, expected 1 or more");
}
