// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace sar;

TEST_CASE("the account counts live bytes and their peak") {
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  {
    const Tensor a({1000, 10});
    CHECK(live_bytes() == before + a.bytes());
    {
      const Tensor b({500, 10});
      const Tensor handle = b;
      CHECK(live_bytes() == before + a.bytes() + b.bytes());
    }
    CHECK(live_bytes() == before + a.bytes());
    CHECK(peak_bytes() == before + a.bytes() + a.bytes() / 2);
    reset_peak_bytes();
    CHECK(peak_bytes() == live_bytes());
  }
  CHECK(live_bytes() == before);
}

TEST_CASE("arrays are accounted, too, and resize() does not initialize") {
  const std::size_t before = live_bytes();
  Array<std::int32_t> a;
  a.reserve(100);
  CHECK(live_bytes() == before + 400);
  a.assign(100, 7);
  a.clear();
  a.resize(100);
  CHECK(a[99] == 7);
  Array<std::int32_t> moved = std::move(a);
  CHECK(live_bytes() == before + 400);
  moved = {};
  moved.shrink_to_fit();
  CHECK(live_bytes() == before);
}

TEST_CASE("blocks of no bytes are blocks") {
  const std::size_t before = live_bytes();
  void* a = allocate_bytes(0);
  void* b = allocate_bytes(0);
  CHECK(a != nullptr);
  CHECK(a != b);
  deallocate_bytes(a, 0);
  deallocate_bytes(b, 0);
  CHECK(live_bytes() == before);
}

#if !defined(__SANITIZE_ADDRESS__)  // which stops the program instead
TEST_CASE("a block that no memory can hold is an error that names it, and is not counted") {
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  try {
    (void)allocate_bytes(std::size_t{1} << 60);
    FAIL("no exception");
  } catch (const MemoryError& error) {
    CHECK(std::string(error.what()).find("1152921504606846976 bytes") != std::string::npos);
  }
  CHECK(live_bytes() == before);
  CHECK(peak_bytes() == before);
}
#endif

TEST_CASE("blocks of all sizes keep their contents beside each other, from several threads") {
  const std::size_t before = live_bytes();
  const auto work = [](unsigned char id) {
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    for (int round = 0; round < 200; ++round) {
      const std::size_t bytes = (std::size_t{1} << (round % 20)) + static_cast<std::size_t>(round);
      auto* block = static_cast<unsigned char*>(allocate_bytes(bytes));
      std::memset(block, id, bytes);
      blocks.emplace_back(block, bytes);
      if (round % 3 == 2) {
        const auto [old, old_bytes] = blocks[blocks.size() / 2];
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2));
        deallocate_bytes(old, old_bytes);
      }
    }
    bool intact = true;
    for (const auto& [block, bytes] : blocks) {
      for (std::size_t i = 0; i < bytes; ++i) intact = intact && block[i] == id;
      deallocate_bytes(block, bytes);
    }
    return intact;
  };
  bool other_intact = false;
  std::thread other([&] { other_intact = work(1); });
  const bool intact = work(2);
  other.join();
  CHECK(intact);
  CHECK(other_intact);
  CHECK(live_bytes() == before);
}
