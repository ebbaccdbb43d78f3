#include <doctest/doctest.h>

#include <sar/graph/shard/graph_shard.hpp>

#include <vector>

using namespace sar;

namespace {

/// Edges (destination, source), sorted as build_shard wants them.
std::vector<LocalEdge> edges_of(std::initializer_list<std::pair<int, int>> pairs) {
  std::vector<LocalEdge> edges;
  for (const auto& [dst, src] : pairs) edges.push_back({dst, src, std::ssize(edges), 1});
  return edges;
}

using Ids = Array<local_index>;

}  // namespace

TEST_CASE("a compressed shard lists the destinations that have edges") {
  const auto edges = edges_of({{0, 1}, {0, 2}, {2, 1}, {2, 1}, {4, 0}});
  const GraphShard shard = build_shard(edges.data(), 5, 10, 6, 3, true);
  CHECK(shard.num_src_rows == 3);
  CHECK(shard.dst_rows == Ids{0, 2, 4});
  CHECK(shard.row_begin == Ids{0, 2, 4, 5});
  CHECK(shard.src == Ids{1, 2, 1, 1, 0});
  CHECK(shard.num_dst == 6);
  CHECK(shard.edge(3) == 13);
  CHECK(shard.transpose().begin == Ids{0, 1, 4, 5});
  CHECK(shard.transpose().dst == Ids{4, 0, 2, 2, 0});
  CHECK(shard.transpose_positions() == Ids{4, 0, 2, 3, 1});
}

TEST_CASE("a shard that is not compressed has all rows") {
  const auto edges = edges_of({{1, 2}, {1, 3}});
  const GraphShard shard = build_shard(edges.data(), 2, 0, 3, 4, false);
  CHECK(shard.num_src_rows == 4);
  CHECK(shard.num_rows() == 3);
  CHECK(shard.row_begin == Ids{0, 0, 2, 2});
  CHECK(shard.dst_row(2) == 2);
}
