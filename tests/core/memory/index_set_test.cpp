// SPDX-License-Identifier: MIT
#include <sar/core/memory/index_arrays.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <vector>

using namespace sar;

namespace {

TEST_CASE("a set of numbers numbers its members in increasing order") {
  for (const Index n : {Index{1}, Index{64}, Index{65}, Index{513}, Index{2000}}) {
    IndexSet set(n);
    std::vector<Index> expected;
    for (Index i = 0; i < n; i += 1 + i % 7) {
      set.insert(i);
      expected.push_back(i);
    }
    set.insert(n - 1);
    if (expected.back() != n - 1) expected.push_back(n - 1);
    set.make_numbers();
    const Array<Index> members = set.members();
    CHECK(std::vector<Index>(members.begin(), members.end()) == expected);
    CHECK(set.size() == static_cast<Index>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(set.number(expected[i]) == static_cast<Index>(i));
    for (Index i = 0; i < n; ++i)
      CHECK(set.contains(i) == std::binary_search(expected.begin(), expected.end(), i));
    for (Index i = 0; i < n; ++i)
      CHECK(set.next(i) == *std::lower_bound(expected.begin(), expected.end(), i));
    CHECK(set.next(n) >= n);
    set.erase(expected.back());
    set.make_numbers();
    CHECK(!set.contains(expected.back()));
    CHECK(set.size() == std::ssize(expected) - 1);
    CHECK(set.number(n - 1) == set.size());
  }
}

}  // namespace
