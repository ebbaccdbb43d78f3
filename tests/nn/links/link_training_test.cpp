// SPDX-License-Identifier: MIT
#include "nn/links/link_task.hpp"
#include "support/reference.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace sar;
using namespace sar::test;

TEST_CASE("the curve of link prediction does not depend on ranks and partitioning") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const SbmOptions sbm{.nodes = 300, .degree = 8, .classes = 4, .features = 8, .homophily = 0.9};
  const auto expected = train(Task(self, make_sbm(self, sbm), 3), 8, 10, 0);
  const auto found =
      train(Task(world, make_sbm(world, sbm, {.partition = PartitionMethod::random}), 3), 8, 10, 0);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i + 1 < found.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) < tolerance() * std::abs(expected[i]));
  CHECK(std::abs(found.back() - expected.back()) < 1e-3);
}
