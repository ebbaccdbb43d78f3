// SPDX-License-Identifier: MIT

// A block comes from the thread's active Workspace, from the arena (64 KiB or more) or from oneTBB. The
// account is two atomic counters; the peak is raised by compare and exchange. Blocks that a workspace
// keeps for reuse stay in the account.
#include <sar/core/error.hpp>
#include <sar/core/memory/arena.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/in_loop.hpp>

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

// Blocks of one size and source form a bin. A bin links its free blocks through their first bytes (last
// in, first out), so a cache of any size needs no memory of its own. Bins are searched one after the
// other: O(bins) time per allocation and release.

namespace {

thread_local Workspace* in_use_here = nullptr;

/// Sizes are rounded up to a multiple, so that blocks are reused more often and a free block can store the
/// pointer to the next one.
constexpr std::size_t unit = 64;

std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

constexpr Workspace::Source of_objects{
    [](std::size_t bytes) { return ::operator new(rounded(bytes)); },
    [](void* block, std::size_t) noexcept { ::operator delete(block); },
};

}  // namespace

Workspace::~Workspace() {
  for (const Bin& bin : bins_)
    for (FreeBlock* block = bin.free; block != nullptr;)
      bin.source->deallocate(std::exchange(block, block->next), bin.bytes);
}

Workspace::Use::Use(Workspace& workspace) noexcept : outer_(std::exchange(in_use_here, &workspace)) {}
Workspace::Use::~Use() {
  in_use_here = outer_;
}

Workspace* Workspace::current() noexcept {
  return in_use_here;
}

Workspace::Bin* Workspace::find(std::size_t bytes, const Source& source) noexcept {
  const auto found = std::ranges::find_if(
      bins_, [&](const Bin& bin) { return bin.bytes == bytes && bin.source == &source; });
  return found != bins_.end() ? &*found : nullptr;
}

void* Workspace::take(std::size_t bytes, const Source& source) {
  Bin* bin = find(bytes, source);
  if (bin == nullptr) bin = &bins_.emplace_back(Bin{.source = &source, .bytes = bytes});
  void* block = bin->free;
  if (block != nullptr) {
    bin->free = bin->free->next;
  } else {
    block = source.allocate(bytes);
    ++taken_anew_;
  }
  ++bin->in_use;
  return block;
}

void Workspace::give_back(void* block, std::size_t bytes, const Source& source) noexcept {
  Bin* const bin = find(bytes, source);
  if (bin == nullptr || bin->in_use == 0) return source.deallocate(block, bytes);
  --bin->in_use;
  bin->free = ::new (block) FreeBlock{bin->free};
}

void Workspace::start_pass(std::size_t request, std::size_t bytes, void* block) noexcept {
  requests_.clear();
  lent_request_ = request;
  lent_bytes_ = bytes;
  lent_ = block;
  lent_in_use_ = false;
}

std::size_t Workspace::request_of(const void* block) const noexcept {
  for (std::size_t i = requests_.size(); i-- > 0;)
    if (requests_[i] == block) return i;
  return no_request;
}

void* Workspace::take_values(std::size_t bytes, const Source& source) {
  const auto anew = [&] { return bytes < large_block ? take(bytes, source) : source.allocate(bytes); };
  if (InLoop::here()) return anew();
  const bool lends = requests_.size() == lent_request_ && bytes == lent_bytes_;
  requests_.push_back(nullptr);  // reserve the entry first: this may throw
  void* const block = lends ? lent_ : anew();
  lent_in_use_ |= lends;
  return requests_.back() = block;
}

void Workspace::give_back_values(void* block, std::size_t bytes, const Source& source) noexcept {
  if (lent_in_use_ && block == lent_)
    lent_in_use_ = false;
  else if (bytes < large_block)
    give_back(block, bytes, source);
  else
    source.deallocate(block, bytes);
}

void* allocate_object(std::size_t bytes) {
  Workspace* const workspace = Workspace::current();
  return workspace != nullptr ? workspace->take(rounded(bytes), of_objects) : of_objects.allocate(bytes);
}

void deallocate_object(void* block, std::size_t bytes) noexcept {
  Workspace* const workspace = Workspace::current();
  if (workspace != nullptr)
    workspace->give_back(block, rounded(bytes), of_objects);
  else
    of_objects.deallocate(block, bytes);
}
}}  // namespace sar
