// SPDX-License-Identifier: MIT

// A block comes from the thread's active Workspace, from the arena (64 KiB or more) or from oneTBB. The
// account is two atomic counters; the peak is raised by compare and exchange. Blocks that a workspace
// keeps for reuse stay in the account.
#include <sar/core/error.hpp>
#include <sar/core/memory/arena.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/workspace.hpp>

#include <oneapi/tbb/scalable_allocator.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#if defined(SAR_MEMORY_SANITIZER)
#include <sanitizer/msan_interface.h>
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};

constexpr std::size_t alignment = 64;
constexpr std::size_t large_block = std::size_t{64} << 10;

#if defined(SAR_SEPARATE_BLOCKS) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// Allocates every block separately, so that a sanitizer detects each access beyond its end or after its
// lifetime, and does not confuse it with an earlier block at the same address.
void* take(std::size_t bytes) {
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void give_back(void* block, std::size_t) noexcept {
  std::free(block);
}
bool is_in_arena(const void*) noexcept {
  return false;
}
void shrink(void*, std::size_t, std::size_t) noexcept {}
void release() noexcept {}

#else

/// Never destroyed, because static tensors may be destroyed later. Reserving four times the machine's memory
/// in addresses leaves room for fragmentation.
Arena& arena() {
  static Arena* const instance = new Arena(std::size_t{4} * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  return *instance;
}

bool is_in_arena(const void* block) noexcept {
  return arena().contains(block);
}

void* take(std::size_t bytes) {
  if (bytes >= large_block)
    if (void* block = arena().allocate(bytes)) return block;
  return scalable_aligned_malloc(bytes, alignment);
}

void give_back(void* block, std::size_t bytes) noexcept {
  if (bytes >= large_block && is_in_arena(block))
    arena().deallocate(block, bytes);
  else
    scalable_aligned_free(block);
}

void shrink(void* block, std::size_t bytes, std::size_t to) noexcept {
  arena().shrink(block, bytes, to);
}

void release() noexcept {
  arena().release_free();
}

#endif

}  // namespace

std::size_t live_bytes() noexcept {
  return live.load();
}
std::size_t peak_bytes() noexcept {
  return peak.load();
}
void reset_peak_bytes() noexcept {
  peak.store(live.load());
}
void release_cached_memory() noexcept {
  release();
}

namespace {

// Tell the memory sanitizer that a new block has no values yet, also one that a workspace has kept. The next
// user of a block given back may be a library that is not instrumented, so that the sanitizer does not see it
// write values.
#if defined(SAR_MEMORY_SANITIZER)
void mark_without_values(void* block, std::size_t bytes) noexcept {
  __msan_poison(block, bytes);
}
void mark_with_values(void* block, std::size_t bytes) noexcept {
  __msan_unpoison(block, bytes);
}
#else
void mark_without_values(void*, std::size_t) noexcept {}
void mark_with_values(void*, std::size_t) noexcept {}
#endif

constexpr std::size_t least_block = sizeof(void*);  // a workspace links its free blocks

void* take_accounted(std::size_t bytes) {
  void* block = take(std::max(bytes, least_block));
  if (block == nullptr)
    throw MemoryError(
        concat("no memory for a block of ", bytes, " bytes (", live_bytes(), " bytes are live)"));
  const std::size_t now = live.fetch_add(bytes) + bytes;
  std::size_t before = peak.load();
  while (before < now && !peak.compare_exchange_weak(before, now)) {
  }
  return block;
}

void give_back_accounted(void* block, std::size_t bytes) noexcept {
  live.fetch_sub(bytes);
  mark_with_values(block, bytes);
  give_back(block, std::max(bytes, least_block));
}

constexpr Workspace::Source of_values{take_accounted, give_back_accounted};

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  Workspace* const workspace = Workspace::current();
  void* const block = workspace != nullptr ? workspace->take_values(bytes, of_values) : take_accounted(bytes);
  mark_without_values(block, bytes);
  return block;
}

bool can_shrink(const void* block, std::size_t to) noexcept {
  return Workspace::current() == nullptr && to >= large_block && is_in_arena(block);
}

void shrink_block(void* block, std::size_t bytes, std::size_t to) noexcept {
  shrink(block, bytes, to);
  live.fetch_sub(bytes - to);
}

void deallocate_bytes(void* block, std::size_t bytes) noexcept {
  Workspace* const workspace = Workspace::current();
  if (workspace != nullptr)
    workspace->give_back_values(block, bytes, of_values);
  else
    give_back_accounted(block, bytes);
}

}}  // namespace sar
