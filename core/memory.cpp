#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>

#include <oneapi/tbb/scalable_allocator.h>

#include <atomic>

namespace sar {
namespace {

std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};

}  // namespace

std::size_t live_bytes() noexcept { return live.load(); }
std::size_t peak_bytes() noexcept { return peak.load(); }
void reset_peak_bytes() noexcept { peak.store(live.load()); }

void* allocate_bytes(std::size_t bytes) {
  void* block = scalable_aligned_malloc(bytes > 0 ? bytes : 1, 64);
  if (block == nullptr) throw MemoryError(concat("no memory for a block of ", bytes, " bytes (", live_bytes(), " bytes are live)"));
  const std::size_t now = live.fetch_add(bytes) + bytes;
  std::size_t before = peak.load();
  while (before < now && !peak.compare_exchange_weak(before, now)) {
  }
  return block;
}

void deallocate_bytes(void* block, std::size_t bytes) noexcept {
  live.fetch_sub(bytes);
  scalable_aligned_free(block);
}

}  // namespace sar
