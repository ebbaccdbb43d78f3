// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/edges_by_type.hpp>

#include <atomic>
#include <tuple>

using namespace sar;
using namespace sar::test;

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
      for (Index x = block.begin()[p]; x < block.begin()[p + 1]; ++x)
        found.emplace_back(group.type, block.row(p), block.other()[x], block.edge()[x]);
  return found;
}

}  // namespace

TEST_CASE("edges of a block by type, row and position") {
  const TwoShards g;
  const std::vector<std::uint16_t> types = types_of(g.num_edges());
  for (const GraphShard* shard : {&g.local, &g.remote}) {
    EdgesByType block(num_types);
    for (Index first = 0; first < shard->num_rows(); first += 6) {
      const Index last = std::min(first + 6, shard->num_rows());
      block.group({.begin = shard->row_begin.data(),
                   .end = shard->row_begin.data() + 1,
                   .other = shard->src.data(),
                   .first_edge = shard->first_edge,
                   .types = types.data()},
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
        for (Index p = group.first + 1; p < group.last; ++p) CHECK(block.row(p - 1) < block.row(p));
    }
  }
}

TEST_CASE("the transpose by type, without long rows") {
  const TwoShards g;
  const std::vector<std::uint16_t> types = types_of(g.num_edges());
  const SourceOffsets offsets(g.remote, 0, g.remote.num_src_rows);
  constexpr Index longest = 4;
  EdgesByType block(num_types);
  block.group({.begin = offsets.data(),
               .end = offsets.data() + 1,
               .other = g.remote.transpose().dst.data(),
               .position_of = g.remote.transpose_positions().data(),
               .first_edge = g.remote.first_edge,
               .types = types.data()},
              0, g.remote.num_src_rows, longest);
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
}

TEST_CASE("blocks of rows cover all rows once") {
  for (const Index rows : {0, 1, 700, 40000}) {
    std::vector<local_index> offsets(rows + 1);
    for (Index i = 0; i < rows; ++i) offsets[i + 1] = offsets[i] + static_cast<local_index>(i % 5);
    std::vector<std::atomic<int>> visits(rows);
    for_typed_blocks(offsets.data(), rows, num_types, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) ++visits[i];
    });
    Index once = 0;
    for (const std::atomic<int>& n : visits) once += n == 1 ? 1 : 0;
    CHECK(once == rows);
  }
}
