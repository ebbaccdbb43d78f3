// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/edge_walk.hpp>

#include <algorithm>
#include <atomic>
#include <tuple>

using namespace sar;
using namespace sar::test;

TEST_CASE("stages of a shard have its edges once, each where its source is") {
  const TwoShards g;
  const GraphShard& shard = g.remote;
  for (const Index rows : {Index{1}, Index{4}, shard.num_src_rows}) {
    EdgeWalk walk;
    std::vector<int> visits(shard.num_edges(), 0);
    for (Index begin = 0; begin < shard.num_src_rows; begin += rows) {
      const Stage stage{shard, begin, std::min(begin + rows, shard.num_src_rows), nullptr};
      const EdgeRows edges = walk.by_destination(stage);
      Index before = 0;
      for (Index i = 0; i < edges.num_rows; ++i) {
        CHECK(edges.offsets()[i] - edges.offsets()[0] == before);
        before += edges.end[i] - edges.begin[i];
        for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
          ++visits[k];
          CHECK(stage.begin <= shard.src[k]);
          CHECK(shard.src[k] < stage.end);
          CHECK(g.edges[shard.edge(k)].dst == edges.row(i));
        }
      }
    }
    CHECK(visits == std::vector<int>(visits.size(), 1));
  }
}

TEST_CASE("stages of a shard of many rows count the edges before each row") {
  constexpr Index num_dst = 20000, num_src = 50;
  std::vector<LocalEdge> list;
  for (Index dst = 0; dst < num_dst; ++dst)
    for (Index k = 0; k < dst % 4; ++k)
      list.push_back({static_cast<local_index>(dst), static_cast<local_index>((dst % 13) + 12 * k),
                      std::ssize(list), 1});
  const GraphShard shard = build_shard(list.data(), std::ssize(list), 0, num_dst, num_src, false);
  EdgeWalk walk;
  Index visited = 0;
  for (Index begin = 0; begin < num_src; begin += 10) {
    const EdgeRows edges = walk.by_destination({shard, begin, begin + 10, nullptr});
    Index before = 0, wrong = 0;
    for (Index i = 0; i < edges.num_rows; ++i) {
      wrong += edges.before[i] == before ? 0 : 1;
      before += edges.end[i] - edges.begin[i];
    }
    CHECK(wrong == 0);
    visited += before;
  }
  CHECK(visited == std::ssize(list));
}

TEST_CASE("the local shard may come in parts of its rows, of which the first lists all") {
  const TwoShards g;
  for (const Index rows : {Index{1}, Index{6}, TwoShards::num_dst}) {
    EdgeWalk walk;
    std::vector<int> visits(g.local.num_edges(), 0);
    for (Index first = 0; first < TwoShards::num_dst; first += rows) {
      const Index end = std::min(first + rows, TwoShards::num_dst);
      const EdgeRows edges = walk.by_destination({.shard = g.local,
                                                  .begin = 0,
                                                  .end = TwoShards::num_local,
                                                  .rows = nullptr,
                                                  .first_row = first,
                                                  .end_row = end});
      CHECK(edges.num_rows == (first == 0 ? TwoShards::num_dst : end - first));
      Index before = 0;
      for (Index i = 0; i < edges.num_rows; ++i) {
        CHECK(edges.offsets()[i] - edges.offsets()[0] == before);
        before += edges.end[i] - edges.begin[i];
        if (edges.begin[i] < edges.end[i]) CHECK((first <= edges.row(i) && edges.row(i) < end));
        for (Index k = edges.begin[i]; k < edges.end[i]; ++k) {
          ++visits[k];
          CHECK(g.edges[g.local.edge(k)].dst == edges.row(i));
        }
      }
    }
    CHECK(visits == std::vector<int>(visits.size(), 1));
  }
}

namespace {

constexpr Index num_types = 5;

/// Type 3 has no edges.
std::vector<std::uint16_t> types_of(Index edges) {
  std::vector<std::uint16_t> types(edges);
  for (Index e = 0; e < edges; ++e) types[e] = static_cast<std::uint16_t>(e * e % 7 % num_types);
  for (std::uint16_t& type : types) type = type == 3 ? 4 : type;
  return types;
}

using Found = std::vector<std::tuple<Index, Index, Index, Index>>;  // type, row, other, edge

Found edges_in(const EdgesByType& block) {
  Found found;
  for (const EdgesByType::Group& group : block.groups())
    for (Index p = group.first; p < group.last; ++p)
      for (Index x = block.pairs().begin[p]; x < block.pairs().end[p]; ++x)
        found.emplace_back(group.type, block.pairs().row(p), block.pairs().other[x], block.pairs().edge(x));
  return found;
}

}  // namespace

TEST_CASE("edges of a block by type, row and position") {
  const TwoShards g;
  const std::vector<std::uint16_t> types = types_of(g.num_edges());
  for (const GraphShard* shard : {&g.local, &g.remote}) {
    EdgesByType block(types.data(), num_types);
    for (Index first = 0; first < shard->num_rows(); first += 6) {
      const Index last = std::min(first + 6, shard->num_rows());
      block.group({.num_rows = shard->num_rows(),
                   .begin = shard->row_begin.data(),
                   .end = shard->row_begin.data() + 1,
                   .other = shard->src.data(),
                   .first_edge = shard->first_edge},
                  first, last);
      Found want;
      for (Index i = first; i < last; ++i)
        for (Index k = shard->row_begin[i]; k < shard->row_begin[i + 1]; ++k)
          want.emplace_back(types[shard->edge(k)], i, shard->src[k], shard->edge(k));
      std::stable_sort(want.begin(), want.end(), [](const auto& a, const auto& b) {
        return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
      });
      CHECK(edges_in(block) == want);
      for (const EdgesByType::Group& group : block.groups())
        for (Index p = group.first + 1; p < group.last; ++p)
          CHECK(block.pairs().row(p - 1) < block.pairs().row(p));
    }
  }
}

TEST_CASE("the transpose by type, without long rows") {
  const TwoShards g;
  const std::vector<std::uint16_t> types = types_of(g.num_edges());
  const SourceOffsets offsets(g.remote, 0, g.remote.num_src_rows);
  constexpr Index longest = 4;
  EdgesByType block(types.data(), num_types);
  EdgeWalk walk;
  const EdgeParts split(walk.by_source({g.remote, 0, g.remote.num_src_rows, nullptr}), longest, 3);
  block.group(split.whole_rows(), 0, g.remote.num_src_rows);
  Index edges = 0, in_long_rows = 0;
  for (Index u = 0; u < g.remote.num_src_rows; ++u) {
    const Index here = offsets[u + 1] - offsets[u];
    in_long_rows += here > longest ? here : 0;
  }
  for (const auto& [type, row, other, edge] : edges_in(block)) {
    CHECK(g.edges[edge].src == TwoShards::num_local + row);
    CHECK(g.edges[edge].dst == other);
    CHECK(types[edge] == type);
    ++edges;
  }
  CHECK(in_long_rows > 0);
  CHECK(edges == g.remote.num_edges() - in_long_rows);
  const EdgeRows parts = split.parts();
  CHECK(parts.num_edges() == in_long_rows);
  split.for_rows([&](Index row, Index first, Index last) {
    CHECK(parts.begin[first] == offsets[row]);
    CHECK(parts.end[last - 1] == offsets[row + 1]);
    for (Index i = first; i < last; ++i) {
      CHECK(parts.row(i) == row);
      CHECK(parts.result(i) == i);
      CHECK(parts.size(i) <= 3);
      if (i > first) CHECK(parts.begin[i] == parts.end[i - 1]);
    }
  });
}

TEST_CASE("blocks of typed rows cover all rows once") {
  for (const Index rows : {0, 1, 700, 40000}) {
    std::vector<local_index> offsets(rows + 1);
    for (Index i = 0; i < rows; ++i) offsets[i + 1] = offsets[i] + static_cast<local_index>(i % 5);
    std::vector<std::atomic<int>> visits(rows);
    for_typed_blocks({.num_rows = rows, .begin = offsets.data(), .end = offsets.data() + 1}, num_types,
                     [&](Index first, Index last) {
                       for (Index i = first; i < last; ++i) ++visits[i];
                     });
    Index once = 0;
    for (const std::atomic<int>& n : visits) once += n == 1 ? 1 : 0;
    CHECK(once == rows);
  }
}
