// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/tensor/broadcast.hpp>

#include <doctest/doctest.h>

namespace {

using namespace sar;

TEST_CASE("shapes broadcast as NumPy's do") {
  CHECK(broadcast({4, 3}, {3}) == Shape{4, 3});
  CHECK(broadcast({4, 1}, {1, 3}) == Shape{4, 3});
  CHECK(broadcast({1}, {5, 2, 2}) == Shape{5, 2, 2});
  CHECK(broadcast({0, 3}, {1, 3}) == Shape{0, 3});
  CHECK_THROWS_AS(broadcast({4, 3}, {4}), ShapeError);
  CHECK_THROWS_AS(broadcast({4}, {}), ShapeError);
}

TEST_CASE("dimensions that both operands traverse alike are one loop") {
  const BroadcastLoops same({4, 3, 2}, {4, 3, 2}, {4, 3, 2});
  CHECK(same.dims == 1);
  CHECK(same.inner() == 24);
  CHECK(same.lines() == 1);

  const BroadcastLoops column({4, 3, 2}, {4, 1, 1}, {4, 3, 2});
  CHECK(column.dims == 2);
  CHECK(column.inner() == 6);
  CHECK(column.stride_b[1] == 0);
  CHECK(column.offsets(3) == std::array<Index, 2>{18, 3});

  const BroadcastLoops middle({4, 1, 2}, {3, 2}, {4, 3, 2});
  CHECK(middle.dims == 3);
  CHECK(middle.lines() == 12);
  CHECK(middle.offsets(7) == std::array<Index, 2>{4, 2});  // line (2, 1)
}

TEST_CASE("a single element is one loop of one") {
  const BroadcastLoops one({1, 1}, {1}, {1, 1});
  CHECK(one.dims == 1);
  CHECK(one.inner() == 1);
  CHECK(one.lines() == 1);
}

}  // namespace
