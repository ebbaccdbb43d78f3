// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "graph/test_graphs.hpp"
#include "support/thrown.hpp"

using namespace sar;
using namespace sar::test;

namespace {

/// Where each node comes, after a check that each comes once.
std::vector<Index> positions(Index num_nodes, const std::vector<Index>& src, const std::vector<Index>& dst) {
  const Array<Index> order = locality_order(num_nodes, src, dst);
  CHECK(order == locality_order(num_nodes, src, dst));
  REQUIRE(static_cast<Index>(order.size()) == num_nodes);
  std::vector<Index> position(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i)
    position.at(static_cast<std::size_t>(order[i])) = static_cast<Index>(i);
  CHECK(std::count(position.begin(), position.end(), -1) == 0);
  return position;
}

}  // namespace

TEST_CASE("an order has every node once: isolated nodes, loops, parallel edges, hubs, no edges") {
  for (const WholeGraph& g : test_graphs())
    if (g.square) positions(g.num_src, g.src, g.dst);
  positions(0, {}, {});
  positions(1, {0}, {0});
  positions(5000, {}, {});  // more than a cluster, nothing to go by
}

TEST_CASE("nodes of a clique come together, the two of a pair of cliques side by side") {
  // 200 cliques of 20, ids scattered; cliques 2k and 2k + 1 are joined by 40 edges, all others by 1
  constexpr Index cliques = 200, size = 20;
  const KeyedBijection id(cliques * size, {1, 2});
  std::vector<Index> src, dst;
  const auto join = [&](Index u, Index v) {
    src.push_back(id(u));
    dst.push_back(id(v));
  };
  for (Index c = 0; c < cliques; ++c) {
    for (Index i = 0; i < size; ++i)
      for (Index j = 0; j < i; ++j) join(c * size + i, c * size + j);
    join(c * size, (c + 1) % cliques * size + 1);
    if (c % 2 == 0)
      for (Index i = 0; i < 2 * size; ++i) join(c * size + i % size, (c + 1) * size + (i * 7 + 3) % size);
  }
  const std::vector<Index> position = positions(cliques * size, src, dst);
  Index far = 0;
  for (Index c = 0; c < cliques; c += 2) {
    Index first = cliques * size, last = 0;
    for (Index i = c * size; i < (c + 2) * size; ++i) {
      first = std::min(first, position[static_cast<std::size_t>(id(i))]);
      last = std::max(last, position[static_cast<std::size_t>(id(i))]);
    }
    far += last - first >= 1024;
  }
  CHECK(far == 0);
}

TEST_CASE("inside a cluster, nodes come by decreasing degree") {
  // a hub, three nodes of degree 3, others that only know the hub
  const std::vector<Index> src{5, 5, 5, 5, 5, 5, 5, 1, 1, 3}, dst{0, 1, 2, 3, 4, 6, 7, 3, 7, 7};
  const std::vector<Index> position = positions(8, src, dst);
  CHECK(position[5] == 0);
  CHECK(position[1] == 1);
  CHECK(position[3] == 2);
  CHECK(position[7] == 3);
}

TEST_CASE("bad input of an order") {
  const std::vector<Index> one{0}, two{0, 7};
  CHECK(thrown<InputError>([&] { static_cast<void>(locality_order(7, two, two)); }) ==
        "an edge joins nodes 7 and 7, expected 0 to 6");
  CHECK(thrown<InputError>([&] { static_cast<void>(locality_order(8, one, two)); }) ==
        "there are 1 sources and 2 destinations, expected as many of both");
  CHECK(thrown<InputError>([&] { static_cast<void>(locality_order(-1, {}, {})); }) ==
        "cannot order -1 nodes, expected fewer than 2^32");
}
