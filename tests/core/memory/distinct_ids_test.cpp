// SPDX-License-Identifier: MIT
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/random.hpp>

#include "support/effort.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

using namespace sar;
using sar::test::full_run;

namespace {

/// Inserts the ids, which are below n, and compares what the set says with a sorted list.
void check_set(Index n, std::vector<Index> ids) {
  DistinctIds set(n);
  for (const Index id : ids) set.insert(id);
  set.make_numbers();
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const Array<Index> members = set.members();
  REQUIRE(std::equal(members.begin(), members.end(), ids.begin(), ids.end()));
  CHECK(set.size() == std::ssize(members));
  Index wrong = 0;
  for (Index i = 0; i < std::ssize(members); ++i) wrong += set.number(members[i]) != i;
  CHECK(wrong == 0);
}

/// `count` ids below n, some of them close together.
std::vector<Index> draw(Index count, Index n) {
  const Random random({.seed = 7, .stream = static_cast<std::uint64_t>(n), .step = 0});
  std::vector<Index> ids;
  for (Index k = 0; k < count; ++k) {
    const Index range = k % 3 == 0 ? std::min<Index>(n, 5000) : n;
    const double drawn = random.uniform(static_cast<std::uint64_t>(k)) * static_cast<double>(range);
    ids.push_back(std::min(static_cast<Index>(drawn), range - 1));
  }
  return ids;
}

}  // namespace

TEST_CASE("ids are numbered in increasing order, however many and however large they are") {
  constexpr Index largest = std::numeric_limits<Index>::max();
  check_set(0, {});
  check_set(1, {0, 0});
  check_set(largest, {5});
  check_set(largest, {largest - 1, 0, largest - 1});
  for (const Index count : {30, 3000, full_run() ? 1'000'000 : 100'000})
    for (const Index n : {Index{1}, Index{100}, Index{100'000}, Index{20'000'000}, Index{1} << 60}) {
      CAPTURE(count);
      CAPTURE(n);
      check_set(n, draw(count, n));
    }
}

TEST_CASE("a set of ids that has been numbered takes more") {
  DistinctIds set(1000);
  for (const Index id : {9, 4, 9}) set.insert(id);
  set.make_numbers();
  CHECK(set.size() == 2);
  for (const Index id : {4, 700, 1}) set.insert(id);
  set.make_numbers();
  const Array<Index> members = set.members();
  CHECK(std::vector<Index>(members.begin(), members.end()) == std::vector<Index>{1, 4, 9, 700});
  CHECK(set.number(700) == 3);
}

TEST_CASE("the memory of a set of ids follows its members") {
  const Index members = 100'000;
  for (const Index step : {Index{1}, Index{30}, Index{100}, Index{1} << 40}) {
    CAPTURE(step);
    const std::size_t before = live_bytes();
    reset_peak_bytes();
    DistinctIds set(members * step);
    for (Index k = 0; k < 20 * members; ++k) set.insert(k * 7919 % members * step);
    set.make_numbers();
    CHECK(set.size() == members);
    CHECK(live_bytes() - before < members * 95 / 10);
    CHECK(peak_bytes() - before < members * 33);
  }
}
