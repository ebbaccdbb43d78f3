// SPDX-License-Identifier: MIT
#include <sar/core/threads/parallel.hpp>

#include <doctest/doctest.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace sar;

namespace {

int triple(int x) {
  return 3 * x;
}

}  // namespace

TEST_CASE("FunctionRef borrows lambdas, const objects and functions") {
  int calls = 0;
  const auto count = [&calls](int x) {
    ++calls;
    return x + 1;
  };
  const FunctionRef<int(int)> lambda = count;
  CHECK(lambda(1) == 2);
  CHECK(calls == 1);
  const FunctionRef<int(int)> function = triple;
  CHECK(function(4) == 12);
}

TEST_CASE("every element is visited once, in blocks of the grain") {
  for (const int threads : {1, 2}) {
    const ThreadLimit limit(threads);
    for (const Index n : {0, 1, 7, 1000, 100003})
      for (const Index grain : {0, 1, 64, 200000}) {
        if (grain < 64 && n > 1000) continue;
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
        std::atomic<bool> cut_well{true};
        const Index step = std::max<Index>(grain, 1);
        parallel_for(n, grain, [&](Index begin, Index end) {
          if (begin % step != 0 || end != std::min(n, begin + step)) cut_well = false;
          for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        CHECK(cut_well);
        CHECK(std::ranges::all_of(visits, [](const auto& v) { return v == 1; }));
        parallel_for_each(n, grain, [&](Index i) { ++visits[static_cast<std::size_t>(i)]; });
        CHECK(std::ranges::all_of(visits, [](const auto& v) { return v == 2; }));
      }
  }
}

TEST_CASE("a limit of threads holds while it lives, and limits nest") {
  const int all = num_threads();
  CHECK(all >= 1);
  {
    const ThreadLimit one(1);
    CHECK(num_threads() == 1);
    {
      const ThreadLimit none(0);
      CHECK(num_threads() == 1);
    }
    CHECK(num_threads() == 1);
    const auto me = std::this_thread::get_id();
    std::atomic<bool> here{true};
    parallel_for(100, 1, [&](Index, Index) {
      if (std::this_thread::get_id() != me) here = false;
    });
    CHECK(here);
  }
  CHECK(num_threads() == all);
}

TEST_CASE("with several cores, several threads work") {
  if (num_threads() < 2) return;
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  parallel_for(2, 1, [&](Index, Index) {
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (inside == 2) met = true;
  });
  CHECK(met);
}

#if !defined(__SANITIZE_THREAD__)  // which cannot look into the tasks of oneTBB
TEST_CASE("a thread that waits for the end of a loop does not take up a task of the program's") {
  if (num_threads() < 2) return;
  const ThreadLimit two(2);
  const auto wait_for = [](const std::atomic<bool>& event, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!event && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  };
  const auto me = std::this_thread::get_id();
  std::atomic<bool> other_is_here{false}, task_ran{false}, task_ran_here{false};
  parallel_for(2, 1, [&](Index, Index) {
    if (std::this_thread::get_id() != me) {
      other_is_here = true;
      wait_for(task_ran, std::chrono::milliseconds(200));
      return;
    }
    wait_for(other_is_here, std::chrono::seconds(20));
    tbb::task_arena arena{tbb::task_arena::attach()};
    arena.enqueue([&] {
      task_ran_here = std::this_thread::get_id() == me;
      task_ran = true;
    });
  });
  while (!task_ran) std::this_thread::yield();
  CHECK(other_is_here);
  CHECK_FALSE(task_ran_here);
}

TEST_CASE("a loop inside of the program's tasks is complete, though these are cancelled") {
  const ThreadLimit two(2);
  std::atomic<Index> visited{0};
  tbb::task_group group;
  group.run_and_wait([&] {
    group.cancel();
    parallel_for(100, 1, [&](Index begin, Index end) { visited += end - begin; });
  });
  CHECK(visited == 100);
}
#endif

TEST_CASE("all threads of a loop round as the one that calls, and trap nothing") {
  parallel_for(100, 1, [](Index, Index) {});
  std::fenv_t before;
  std::fegetenv(&before);
  std::fesetround(FE_UPWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  const bool traps = feenableexcept(FE_DIVBYZERO) != -1;  // not on every processor of ARM
  std::atomic<int> rounding_otherwise{0}, threads{0};
  parallel_for(2, 1, [&](Index, Index) {
    const volatile double zero = 0;
    [[maybe_unused]] const volatile double infinity = 1 / zero;
    if (std::fegetround() != FE_UPWARD) ++rounding_otherwise;
    ++threads;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (num_threads() > 1 && threads < 2 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  });
  const int rounding = std::fegetround(), trapped = fegetexcept(), raised = std::fetestexcept(FE_DIVBYZERO);
  std::fesetenv(&before);
  CHECK(rounding_otherwise == 0);
  CHECK(rounding == FE_UPWARD);
#if defined(__x86_64__)
  CHECK(traps);
#endif
  CHECK(trapped == (traps ? FE_DIVBYZERO : 0));
  CHECK(raised == 0);
}

TEST_CASE("a reduction gives the same bits for every number of threads, in block order") {
  const auto harmonic = [] {
    return parallel_reduce(
        1000003, 997, 0.0F,
        [](Index begin, Index end) {
          float sum = 0;
          for (Index i = begin; i < end; ++i) sum += 1.0F / static_cast<float>(i + 1);
          return sum;
        },
        [](float a, float b) { return a + b; });
  };
  const auto with_threads = [&](int threads) {
    const ThreadLimit limit(threads);
    return harmonic();
  };
  const float one = with_threads(1);
  CHECK(one == doctest::Approx(std::log(1000003.0) + 0.5772156649).epsilon(1e-4));
  for (int repetition = 0; repetition < 5; ++repetition) CHECK(with_threads(2) == one);

  const auto text = parallel_reduce(
      10, 3, std::string("x"),
      [](Index begin, Index end) { return std::to_string(begin) + std::to_string(end); },
      [](const std::string& a, const std::string& b) { return a + "," + b; });
  CHECK(text == "x,03,36,69,910");
  CHECK(parallel_reduce(
            0, 3, 5, [](Index, Index) { return 1; }, [](int a, int b) { return a + b; }) == 5);
}

TEST_CASE("exceptions of a body reach the caller, and the next loop works") {
  for (const int threads : {1, 2}) {
    const ThreadLimit limit(threads);
    CHECK_THROWS_WITH_AS(parallel_for(1000, 1,
                                      [](Index begin, Index) {
                                        if (begin == 500) throw std::runtime_error("block 500");
                                      }),
                         "block 500", std::runtime_error);
    std::atomic<Index> sum{0};
    parallel_for(100, 7, [&](Index begin, Index end) { sum += end - begin; });
    CHECK(sum == 100);
  }
}

TEST_CASE("a poll scope is called between blocks, on its own thread only") {
  const auto me = std::this_thread::get_id();
  for (const int threads : {1, 2}) {
    const ThreadLimit limit(threads);
    std::atomic<int> polls{0};
    std::atomic<int> mine{0};
    std::atomic<bool> elsewhere{false};
    const auto count = [&] {
      ++polls;
      if (std::this_thread::get_id() != me) elsewhere = true;
    };
    {
      const PollScope scope(count);
      parallel_for(200, 1, [&](Index, Index) {
        if (std::this_thread::get_id() == me) ++mine;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      });
    }
    CHECK_FALSE(elsewhere);
    CHECK(mine > 0);
    CHECK(polls == mine);
    parallel_for(10, 1, [](Index, Index) {});
    CHECK(polls == mine);
  }
}

TEST_CASE("all poll scopes are called, end in any order, and a long body may poll by itself") {
  int first = 0, second = 0, third = 0;
  const auto count_first = [&] { ++first; };
  const auto count_second = [&] { ++second; };
  const auto count_third = [&] { ++third; };
  poll_progress();
  auto a = std::make_unique<PollScope>(count_first);
  poll_progress();
  CHECK(first == 1);
  auto b = std::make_unique<PollScope>(count_second);
  auto c = std::make_unique<PollScope>(count_third);
  poll_progress();
  CHECK(first == 2);
  b.reset();
  poll_progress();
  a.reset();
  poll_progress();
  c.reset();
  poll_progress();
  CHECK(first == 3);
  CHECK(second == 1);
  CHECK(third == 3);
}
