// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace sar;

TEST_CASE("the keyed bijection is one, and inverse() undoes it") {
  for (const Index n : {1, 2, 3, 4, 5, 7, 16, 34, 37, 100, 1000, 4096, 65537, 200001}) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      const KeyedBijection bijection(n, {seed, 9});
      std::vector<char> hit(static_cast<std::size_t>(n), 0);
      for (Index x = 0; x < n; ++x) {
        const Index y = bijection(x);
        REQUIRE((0 <= y && y < n));
        REQUIRE(bijection.inverse(y) == x);
        hit[static_cast<std::size_t>(y)] = 1;
      }
      CHECK(std::count(hit.begin(), hit.end(), 1) == n);
    }
  }
  const Index large = (Index{1} << 62) - 57;
  const KeyedBijection bijection(large, {3, 9});
  for (const Index x : {Index{0}, Index{1}, large / 2, large - 1}) {
    CHECK(bijection(x) < large);
    CHECK(bijection.inverse(bijection(x)) == x);
  }
  CHECK_THROWS_AS(KeyedBijection(-1, {}), InputError);
}

TEST_CASE("the keyed bijection depends on its key and leaves no order") {
  constexpr Index n = 100000;
  const KeyedBijection first(n, {1, 9}), second(n, {2, 9}), other_stream(n, {1, 10});
  Index fixed = 0, same = 0, same_stream = 0;
  double product = 0, step_product = 0;
  for (Index x = 0; x < n; ++x) {
    fixed += first(x) == x;
    same += first(x) == second(x);
    same_stream += first(x) == other_stream(x);
    const auto centered = [](Index y) {
      return (static_cast<double>(y) - (n - 1) / 2.0) / (n / std::sqrt(12.0));
    };
    product += centered(x) * centered(first(x)) / n;
    step_product += centered(first(x)) * centered(first((x + 1) % n)) / n;
  }
  CHECK(fixed < 12);  // about 1 in a random permutation
  CHECK(same < 12);
  CHECK(same_stream < 12);
  CHECK(std::abs(product) < 4 / std::sqrt(n));  // four standard deviations
  CHECK(std::abs(step_product) < 4 / std::sqrt(n));
}
