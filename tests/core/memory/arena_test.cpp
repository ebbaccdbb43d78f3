// SPDX-License-Identifier: MIT
#include <sar/core/memory/arena.hpp>

#include "support/effort.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

using namespace sar;
using sar::test::full_run;

namespace {

constexpr std::size_t mb = std::size_t{1} << 20;

struct Block {
  void* at;
  std::size_t bytes;
};

Block touched(Arena& arena, std::size_t bytes) {
  void* at = arena.allocate(bytes);
  REQUIRE(at != nullptr);
  std::memset(at, 1, bytes);
  return {at, bytes};
}

void give_back(Arena& arena, std::vector<Block>& blocks) {
  for (const Block& block : blocks) arena.deallocate(block.at, block.bytes);
  blocks.clear();
}

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace

TEST_CASE("a repeated pattern of large blocks gets its addresses again and touches no new page") {
  Arena arena(1024 * mb);
  const auto step = [&] {
    std::vector<Block> blocks;
    for (const std::size_t size : {9 * mb, 5 * mb, 9 * mb + 12345}) blocks.push_back(touched(arena, size));
    arena.deallocate(blocks[1].at, blocks[1].bytes);
    blocks.erase(blocks.begin() + 1);
    blocks.push_back(touched(arena, 3 * mb));
    std::vector<void*> addresses;
    for (const Block& block : blocks) addresses.push_back(block.at);
    give_back(arena, blocks);
    return addresses;
  };
  const auto first = step();
  const long before = page_faults();
  for (int repetition = 0; repetition < 5; ++repetition) CHECK(step() == first);
  CHECK(page_faults() - before < 20);  // 130 MB in 4 KB pages would be 33000
}

TEST_CASE("neighboring free ranges merge, in every order of return") {
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    Arena arena(256 * mb);
    std::vector<Block> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back({arena.allocate(4 * mb), 4 * mb});
    for (const int i : order) arena.deallocate(blocks[static_cast<std::size_t>(i)].at, 4 * mb);
    CHECK(arena.allocate(12 * mb) == blocks[0].at);
  }
}

TEST_CASE("a request takes the smallest free range that holds it") {
  Arena arena(256 * mb);
  void* large = arena.allocate(8 * mb);
  void* wall = arena.allocate(1 * mb);
  void* small = arena.allocate(2 * mb);
  void* end = arena.allocate(1 * mb);
  arena.deallocate(large, 8 * mb);
  arena.deallocate(small, 2 * mb);
  CHECK(arena.allocate(2 * mb) == small);
  CHECK(arena.allocate(3 * mb) == large);
  CHECK(wall != end);
}

TEST_CASE("what is held stays within 65/64 of the peak plus 16 MB when sizes keep changing") {
  Arena arena(4096 * mb);
  std::mt19937 random(7);
  std::vector<Block> blocks;
  std::size_t live = 0, peak = 0;
  for (int step = 0; step < 3000; ++step) {
    if (blocks.size() < 30 && random() % 2 == 0) {
      const std::size_t bytes = (1 + random() % 64) * (mb / 4) + random() % 4096;
      blocks.push_back({arena.allocate(bytes), bytes});
      REQUIRE(blocks.back().at != nullptr);
      live += (bytes + Arena::granularity - 1) / Arena::granularity * Arena::granularity;
      peak = std::max(peak, live);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      live -= (blocks.back().bytes + Arena::granularity - 1) / Arena::granularity * Arena::granularity;
      arena.deallocate(blocks.back().at, blocks.back().bytes);
      blocks.pop_back();
    }
    REQUIRE(arena.held_bytes() >= live);
    // 8 MB: edges of free ranges, in huge pages that they share with live blocks
    REQUIRE(arena.held_bytes() <= peak + peak / 64 + (16 + 8) * mb);
  }
  give_back(arena, blocks);
}

TEST_CASE("a small block after large ones leaves their pages in the account, so that they can be returned") {
  Arena arena(1024 * mb);
  const std::size_t large = (full_run() ? 400 : 200) * mb;
  std::vector<Block> blocks{touched(arena, large)};
  give_back(arena, blocks);
  const std::size_t held = arena.held_bytes();
  CHECK(held >= large);
  blocks.push_back(touched(arena, large / 10));
  CHECK(arena.held_bytes() >= held);
  give_back(arena, blocks);
  arena.release_free();
  CHECK(arena.held_bytes() == 0);
}

TEST_CASE("pages of large free ranges are returned when ever larger blocks cannot use them") {
  Arena arena(4096 * mb);
  std::size_t peak = 0;
  std::vector<void*> walls;  // keep the free ranges apart
  for (std::size_t size = 16 * mb; size <= 128 * mb; size += 16 * mb) {
    const Block block = touched(arena, size);
    walls.push_back(arena.allocate(Arena::granularity));
    arena.deallocate(block.at, block.bytes);
    peak = size + walls.size() * Arena::granularity;
    CHECK(arena.held_bytes() <= peak + peak / 64 + 16 * mb);
  }
  arena.release_free();
  CHECK(arena.held_bytes() <= walls.size() * 2 * 2 * mb);  // the edges within shared huge pages
}

TEST_CASE("the end of a block is freed, and what remains keeps its contents") {
  Arena arena(1024 * mb);
  const Block block = touched(arena, 40 * mb);
  void* const wall = arena.allocate(Arena::granularity);
  std::size_t size = block.bytes;
  for (const std::size_t to : {40 * mb, 39 * mb + 1, 10 * mb, 3 * Arena::granularity - 5}) {
    arena.shrink(block.at, size, to);
    size = to;
    const char* const bytes = static_cast<const char*>(block.at);
    CHECK(std::all_of(bytes, bytes + to, [](char c) { return c == 1; }));
  }
  void* const rest = arena.allocate(39 * mb);  // in what was freed
  CHECK(static_cast<char*>(rest) == static_cast<char*>(block.at) + 3 * Arena::granularity);
  arena.deallocate(rest, 39 * mb);
  arena.deallocate(block.at, 3 * Arena::granularity - 5);
  arena.deallocate(wall, Arena::granularity);
  void* const all = arena.allocate(40 * mb + Arena::granularity);
  CHECK(all == block.at);
  arena.deallocate(all, 40 * mb + Arena::granularity);
  arena.release_free();
  CHECK(arena.held_bytes() < 2 * mb);  // whole huge pages are released
}

TEST_CASE("after a release, the bound is that of what is used afterwards") {
  Arena arena(4096 * mb);
  std::vector<Block> blocks{touched(arena, 200 * mb)};
  give_back(arena, blocks);
  arena.release_free();
  const Block first = touched(arena, 40 * mb);
  void* const wall = arena.allocate(Arena::granularity);
  arena.deallocate(first.at, first.bytes);
  const Block second = touched(arena, 42 * mb);
  const std::size_t peak = second.bytes + Arena::granularity;
  CHECK(arena.held_bytes() <= peak + peak / 64 + 16 * mb);
  arena.deallocate(second.at, second.bytes);
  arena.deallocate(wall, Arena::granularity);
}

TEST_CASE("no more pages are returned than the bound asks for") {
  Arena arena(1024 * mb);
  const Block first = touched(arena, 200 * mb);
  void* wall = arena.allocate(Arena::granularity);
  arena.deallocate(first.at, first.bytes);
  const Block second = touched(arena, 202 * mb);
  const std::size_t peak = second.bytes + Arena::granularity;
  const std::size_t bound = peak + peak / 64 + 16 * mb;
  CHECK(arena.held_bytes() <= bound);
  CHECK(arena.held_bytes() + 2 * mb > bound);
  CHECK(arena.allocate(20 * mb) == first.at);  // where the pages are that were kept
  CHECK(wall != nullptr);
}

TEST_CASE("live blocks never overlap and keep their contents while pages are given back around them") {
  Arena arena(2048 * mb);
  std::mt19937 random(11);
  std::vector<Block> blocks;
  for (int step = 0; step < (full_run() ? 400 : 100); ++step) {
    if (blocks.size() < 12 && random() % 3 != 0) {
      const std::size_t bytes = (1 + random() % 4000) * 1000;
      blocks.push_back({arena.allocate(bytes), bytes});
      std::memset(blocks.back().at, static_cast<int>(blocks.back().bytes / 1000 % 251), bytes);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto* bytes = static_cast<const unsigned char*>(blocks.back().at);
      const auto expected = static_cast<unsigned char>(blocks.back().bytes / 1000 % 251);
      bool intact = true;
      for (std::size_t i = 0; i < blocks.back().bytes; ++i) intact = intact && bytes[i] == expected;
      REQUIRE(intact);
      arena.deallocate(blocks.back().at, blocks.back().bytes);
      blocks.pop_back();
    }
    if (step % 50 == 0) arena.release_free();
  }
  give_back(arena, blocks);
}

TEST_CASE("an arena without room says so, and knows its own blocks") {
  Arena arena(64 * mb);
  CHECK(arena.allocate(1024 * mb) == nullptr);
  CHECK(arena.allocate(SIZE_MAX) == nullptr);
  void* block = arena.allocate(40 * mb);
  CHECK(block != nullptr);
  CHECK(arena.allocate(40 * mb) == nullptr);
  CHECK(arena.contains(block));
  int elsewhere = 0;
  CHECK_FALSE(arena.contains(&elsewhere));
  arena.deallocate(block, 40 * mb);
  CHECK(arena.allocate(60 * mb) != nullptr);
}

// The sanitizers take all addresses there are.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SAR_ADDRESSES_TAKEN
#elif defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define SAR_ADDRESSES_TAKEN
#endif
#endif
#if !defined(SAR_ADDRESSES_TAKEN)
TEST_CASE("where the system limits addresses, most of them are left to the program") {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit limited = before;
  limited.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 1100 * mb;
  REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  const Arena arena(std::size_t{1} << 40);
  void* of_program = mmap(nullptr, 256 * mb, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  setrlimit(RLIMIT_AS, &before);
  CHECK(of_program != MAP_FAILED);
  if (of_program != MAP_FAILED) munmap(of_program, 256 * mb);
}
#endif
