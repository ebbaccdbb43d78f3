// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/rows/row_access.hpp>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace {

using namespace sar;

/// The blocks of rows with this work, in ascending order.
std::vector<std::pair<Index, Index>> blocks_of(const std::vector<Index>& work, Index grain) {
  std::vector<Index> before(work.size() + 1, 0);
  std::partial_sum(work.begin(), work.end(), before.begin() + 1);
  std::mutex mutex;
  std::vector<std::pair<Index, Index>> blocks;
  for_blocks_of_work(
      std::ssize(work), before.back(), grain, [&](Index i) { return before[i]; },
      [&](Index first, Index last) {
        const std::lock_guard lock(mutex);
        blocks.emplace_back(first, last);
      });
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace

TEST_CASE("blocks of about equal work have each row once, and none is empty") {
  using Blocks = std::vector<std::pair<Index, Index>>;
  CHECK(blocks_of({}, 4).empty());
  CHECK(blocks_of({1, 1, 1, 1, 1}, 2) == Blocks{{0, 2}, {2, 4}, {4, 5}});
  CHECK(blocks_of({1, 40, 1, 1, 1}, 4) == Blocks{{0, 2}, {2, 5}});  // a row with the work of ten blocks
  CHECK(blocks_of({40, 1}, 4) == Blocks{{0, 1}, {1, 2}});
  CHECK(blocks_of({1, 40}, 4) == Blocks{{0, 2}});
}
