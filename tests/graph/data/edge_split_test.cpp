// SPDX-License-Identifier: MIT
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/splits.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("edges are divided alike for any number of ranks, both directions together") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const auto ids_of = [](const Communicator& comm, const EdgeList& edges) {
    std::vector<Index> ids = comm.all_gather(std::span<const Index>(edges.id));
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  const SbmOptions graph{.nodes = 400, .degree = 12, .classes = 4, .features = 2};
  NodeData data = make_sbm(world, graph, {.partition = PartitionMethod::random});
  NodeData whole = make_sbm(self, graph);
  const EdgeSplitOptions options{.valid = 0.2, .test = 0.3, .seed = 4};
  const EdgeSplit mine = split_edges(world, data, options), all = split_edges(self, whole, options);
  CHECK(ids_of(world, mine.train) == ids_of(self, all.train));
  CHECK(ids_of(world, mine.valid) == ids_of(self, all.valid));
  CHECK(ids_of(world, mine.test) == ids_of(self, all.test));
  CHECK(all.train.size() + all.valid.size() + all.test.size() == whole.edges.size());
  const auto total = static_cast<double>(whole.edges.size());
  CHECK(static_cast<double>(all.test.size()) / total == doctest::Approx(0.3).epsilon(0.1));
  CHECK(static_cast<double>(all.valid.size()) / total == doctest::Approx(0.2).epsilon(0.1));
  // the reverse of an edge of the test is one, too
  std::vector<std::pair<Index, Index>> test;
  for (Index e = 0; e < all.test.size(); ++e) test.emplace_back(all.test.src[e], all.test.dst[e]);
  std::sort(test.begin(), test.end());
  for (const auto& [u, v] : test) CHECK(std::binary_search(test.begin(), test.end(), std::pair(v, u)));
  CHECK(ids_of(self, split_edges(self, whole, {.valid = 0.2, .test = 0.3, .seed = 5}).test) !=
        ids_of(self, all.test));
}

TEST_CASE("shares that are not") {
  const Communicator world = Communicator::world();
  const NodeData data = make_karate(world);
  const bool last = world.rank() == world.size() - 1;
  CHECK(thrown_by_all<InputError>(world,
                                  [&] { (void)split_edges(world, data, {.test = last ? 0.95 : 0.1}); }) ==
        "split_edges: shares of 0.05 for validation and 0.95 for test, expected 0 or more, and less than 1 "
        "together");
  CHECK_THROWS_AS(split_edges(world, data, {.valid = -0.1}), InputError);
}
