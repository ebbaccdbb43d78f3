// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/core/threads/parallel.hpp>
#include <sar/core/threads/side_blocks.hpp>
#include <sar/core/threads/side_loop.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace sar;

TEST_CASE("a side loop runs every block once, beside a loop or when it is finished; at its end none") {
  for (int way = 0; way < 3; ++way) {
    CAPTURE(way);
    std::vector<int> runs(1000, 0);
    std::optional<SideLoop> loop(std::in_place);
    CHECK(loop->done());
    loop->start(1000, 7, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) ++runs[static_cast<std::size_t>(i)];
    });
    CHECK(!loop->done());
    if (way == 0) {  // each of 200 blocks takes one of 143
      parallel_for(200, 1, [](Index, Index) {});
      CHECK(loop->done());
    } else if (way == 1) {
      loop->finish();
      CHECK(loop->done());
    } else {
      loop.reset();
    }
    CHECK(runs == std::vector<int>(1000, way < 2 ? 1 : 0));
    CHECK(!side_blocks_offered());
  }
}

TEST_CASE("a side loop ends when the block that another thread runs has ended") {
  std::atomic<bool> begun = false, ended = false;
  std::optional<SideLoop> loop(std::in_place);
  loop->start(2, 1, [&](Index, Index) {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
  });
  std::thread other([] { CHECK(run_side_block(nullptr)); });
  while (!begun) std::this_thread::yield();
  loop.reset();
  CHECK(ended);
  CHECK(!side_blocks_offered());
  other.join();
}

TEST_CASE("what a block throws is thrown by check(), and not by the loop that has run it") {
  SideLoop loop;
  loop.start(10, 1, [](Index begin, Index) {
    if (begin == 3) throw std::runtime_error("three");
    if (begin == 7) throw std::runtime_error("seven");
  });
  {
    const ThreadLimit limit(1);  // in their order
    CHECK_NOTHROW(parallel_for(20, 1, [](Index, Index) {}));
  }
  CHECK(loop.done());
  CHECK_THROWS_WITH(loop.check(), "three");
  loop.start(1, 1, [](Index, Index) {});
  loop.finish();
  CHECK_NOTHROW(loop.check());
}

TEST_CASE("several side loops, and one that is used again") {
  std::vector<SideLoop> loops(3);
  std::atomic<Index> sum = 0;
  for (int times = 0; times < 2; ++times) {
    for (SideLoop& loop : loops) loop.start(100, 9, [&](Index begin, Index end) { sum += end - begin; });
    parallel_for(10, 1, [](Index, Index) {});
    for (SideLoop& loop : loops) loop.finish();
  }
  CHECK(sum == 600);
  loops.front().start(0, 1, [&](Index, Index) { ++sum; });
  CHECK(loops.front().done());
}
