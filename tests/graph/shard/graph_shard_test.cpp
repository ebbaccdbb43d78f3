// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>
#include <numeric>
#include <random>
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

Ids offsets_of(const GraphShard& shard, Index first, Index last) {
  const SourceOffsets offsets(shard, first, last);
  return {offsets.data(), offsets.data() + (last - first + 1)};
}

}  // namespace

TEST_CASE("a shard lists the destinations that have edges") {
  const auto edges = edges_of({{0, 1}, {0, 2}, {2, 1}, {2, 1}, {4, 0}});
  const GraphShard shard = build_shard(edges.data(), 5, 10, 6, 3, false);
  CHECK(shard.num_src_rows == 3);
  CHECK(shard.dst_rows == Ids{0, 2, 4});
  CHECK(shard.row_begin == Ids{0, 2, 4, 5});
  CHECK(shard.src == Ids{1, 2, 1, 1, 0});
  CHECK(shard.num_dst == 6);
  CHECK(shard.edge(3) == 13);
  CHECK(offsets_of(shard, 0, 3) == Ids{0, 1, 4, 5});
  CHECK(shard.transpose().dst == Ids{4, 0, 2, 2, 0});
  CHECK(shard.transpose_positions() == Ids{4, 0, 2, 3, 1});
}

TEST_CASE("a shard of every row has all rows, or lists few of them") {
  const auto edges = edges_of({{1, 2}, {1, 3}});
  const GraphShard all = build_shard(edges.data(), 2, 0, 2, 4, true);
  CHECK(all.num_rows() == 2);
  CHECK(all.dst_rows.empty());
  CHECK(all.row_begin == Ids{0, 0, 2});
  CHECK(all.dst_row(1) == 1);
  const GraphShard few = build_shard(edges.data(), 2, 0, 5, 4, true);
  CHECK(few.dst_rows == Ids{1});
  CHECK(few.row_begin == Ids{0, 2});
  Ids made;
  const local_index* every = few.offsets_of_every_row(made);
  CHECK(Ids(every, every + 6) == Ids{0, 0, 2, 2, 2, 2});
  const GraphShard none = build_shard(edges.data(), 0, 0, 2, 3, true);
  every = none.offsets_of_every_row(made);
  CHECK(Ids(every, every + 3) == Ids{0, 0, 0});
  CHECK(offsets_of(none, 0, 3) == Ids{0, 0, 0, 0});
  CHECK(offsets_of(none, 2, 3) == Ids{0, 0});
}

TEST_CASE("offsets of sources are the same from bits and from numbers") {
  std::mt19937 random(5);
  for (const int num_src : {1, 3, 63, 64, 65, 200, 2500}) {
    for (const int num_edges : {0, 1, num_src, 4 * num_src}) {  // the last ones keep numbers
      std::vector<LocalEdge> edges;
      std::vector<local_index> counts(static_cast<std::size_t>(num_src), 0);
      for (int k = 0; k < num_edges; ++k) {
        edges.push_back({k, static_cast<local_index>(random() % static_cast<unsigned>(num_src)), k, 1});
        ++counts[static_cast<std::size_t>(edges.back().src)];
      }
      const GraphShard shard = build_shard(edges.data(), num_edges, 0, num_edges + 1, num_src, true);
      for (Index first = 0; first <= num_src; first += num_src > 1000 ? 127 : 1)
        for (const Index last : {first, std::min<Index>(first + 5, num_src), Index{num_src}}) {
          Ids expected{std::accumulate(counts.begin(), counts.begin() + first, local_index{0})};
          for (Index u = first; u < last; ++u)
            expected.push_back(expected.back() + counts[static_cast<std::size_t>(u)]);
          CHECK(offsets_of(shard, first, last) == expected);
        }
    }
  }
}
