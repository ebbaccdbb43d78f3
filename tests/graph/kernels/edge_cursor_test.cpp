// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/edge_cursor.hpp>

using namespace sar;
using namespace sar::test;

TEST_CASE("stages of a shard have its edges once, each where its source is") {
  const TwoShards g;
  const GraphShard& shard = g.remote;
  for (const Index rows : {Index{1}, Index{4}, shard.num_src_rows}) {
    EdgeCursor cursor;
    std::vector<int> visits(shard.num_edges(), 0);
    for (Index begin = 0; begin < shard.num_src_rows; begin += rows) {
      const Stage stage{shard, begin, std::min(begin + rows, shard.num_src_rows), nullptr};
      const EdgeRanges edges = cursor.ranges(stage);
      Index before = 0;
      for (Index i = 0; i < edges.num_rows; ++i) {
        CHECK(edges.before[i] == before);
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

TEST_CASE("the local shard may come in parts of its rows, of which the first lists all") {
  const TwoShards g;
  for (const Index rows : {Index{1}, Index{6}, TwoShards::num_dst}) {
    EdgeCursor cursor;
    std::vector<int> visits(g.local.num_edges(), 0);
    for (Index first = 0; first < TwoShards::num_dst; first += rows) {
      const Index end = std::min(first + rows, TwoShards::num_dst);
      const EdgeRanges edges = cursor.ranges({.shard = g.local,
                                              .begin = 0,
                                              .end = TwoShards::num_local,
                                              .rows = nullptr,
                                              .first_row = first,
                                              .end_row = end});
      CHECK(edges.num_rows == (first == 0 ? TwoShards::num_dst : end - first));
      Index before = 0;
      for (Index i = 0; i < edges.num_rows; ++i) {
        CHECK(edges.before[i] - edges.before[0] == before);
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
