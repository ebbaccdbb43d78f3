#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>

TEST_CASE("a sum over all ranks") {
  const sar::Communicator world = sar::Communicator::world();
  CHECK(world.all_reduce(world.rank() + 1) == world.size() * (world.size() + 1) / 2);
}
