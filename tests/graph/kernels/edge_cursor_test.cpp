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
