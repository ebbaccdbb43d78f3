// SPDX-License-Identifier: MIT

// Free ranges are in two ordered trees: by address, to merge neighbors, and by size, for the best fit.
// With n free ranges, allocate() and deallocate() take O(log n) time. Tree nodes are created in allocate()
// only and kept as spare nodes while no range needs them, so deallocate() cannot fail.
//
// Addresses become accessible in steps of 2 MB from the bottom. Each range has an upper bound of its bytes
// that have pages. If the sum exceeds its limit, allocate() releases whole huge pages, which visits O(n)
// ranges in the worst case.
#include <sar/core/memory/arena.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t small_reserve = std::size_t{64} << 20;

/// The bytes backed by pages above which whole free huge pages are released: 65/64 of the peak plus 16 MB.
std::size_t held_limit(std::size_t peak_live) {
  return peak_live + peak_live / 64 + (std::size_t{16} << 20);
}

/// The top of the used addresses may grow up to this limit instead of splitting a large free range.
std::size_t growth_limit(std::size_t peak_live) {
  return peak_live + peak_live / 2;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
char* round_up(char* at, std::size_t unit) {
  return at + (round_up(reinterpret_cast<std::uintptr_t>(at), unit) - reinterpret_cast<std::uintptr_t>(at));
}

/// A limit on the process's address space (ulimit -v) also counts reserved addresses. The arena takes at most
/// a quarter of the limit; blocks that do not fit come from the other allocator.
std::size_t share_of_limit(std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return bytes;
  return std::min<std::size_t>(bytes, limit.rlim_cur / 4);
}

}  // namespace

Arena::Arena(std::size_t reserve_bytes) {
  reserve_bytes = share_of_limit(reserve_bytes);
  // PROT_NONE memory counts neither as used nor as committed, whatever the system's overcommit policy.
  mapping_bytes_ = round_up(reserve_bytes, huge_page) + huge_page;
  void* mapping = MAP_FAILED;
  while (mapping_bytes_ >= small_reserve || mapping_bytes_ >= reserve_bytes) {
    mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping != MAP_FAILED) break;
    mapping_bytes_ /= 2;
  }
  if (mapping == MAP_FAILED) return;
  mapping_ = static_cast<char*>(mapping);
  begin_ = top_ = writable_ = round_up(mapping_, huge_page);
  end_ = mapping_ + mapping_bytes_;
  end_ -= reinterpret_cast<std::uintptr_t>(end_) % huge_page;
#ifdef MADV_HUGEPAGE
  madvise(begin_, end_ - begin_, MADV_HUGEPAGE);
#endif
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void* Arena::allocate(std::size_t bytes) {
  if (bytes > mapping_bytes_) return nullptr;
  bytes = round_up(std::max<std::size_t>(bytes, 1), granularity);
  const std::lock_guard lock(mutex_);
  prepare();
  // Best fit, except that a range of more than 4 times the size is spared if the arena may grow instead.
  auto fit = by_size_.lower_bound({bytes, nullptr});
  const auto used = static_cast<std::size_t>(top_ - begin_);
  const bool fits_at_top = !free_.empty() && free_.rbegin()->second.bytes >= bytes &&
                           free_.rbegin()->first + free_.rbegin()->second.bytes == top_;
  const bool spare = fit != by_size_.end() && fit->first > 4 * bytes && !fits_at_top &&
                     used + bytes <= growth_limit(std::max(peak_live_, live_ + bytes));
  if (fit == by_size_.end() || spare) {
    if (!grow(bytes) && !spare) return nullptr;
    fit = by_size_.lower_bound({bytes, nullptr});
  }
  char* const block = fit->second;
  const Range range = remove(free_.find(block));
  if (const std::size_t rest = range.bytes - bytes; rest > 0)
    insert(block + bytes, {rest, std::min(rest, range.held)});
  ++blocks_;
  live_ += bytes;
  peak_live_ = std::max(peak_live_, live_);
  release_until(held_limit(peak_live_));
  return block;
}

void Arena::deallocate(void* block, std::size_t bytes) noexcept {
  bytes = round_up(std::max<std::size_t>(bytes, 1), granularity);
  const std::lock_guard lock(mutex_);
  --blocks_;
  live_ -= bytes;
  insert(static_cast<char*>(block), {bytes, bytes});
}

void Arena::shrink(void* block, std::size_t bytes, std::size_t to) noexcept {
  bytes = round_up(std::max<std::size_t>(bytes, 1), granularity);
  to = round_up(std::max<std::size_t>(to, 1), granularity);
  if (to == bytes) return;
  const std::lock_guard lock(mutex_);
  live_ -= bytes - to;
  insert(static_cast<char*>(block) + to, {bytes - to, bytes - to});
}

bool Arena::contains(const void* block) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  return at >= reinterpret_cast<std::uintptr_t>(begin_) && at < reinterpret_cast<std::uintptr_t>(end_);
}

void Arena::release_free() noexcept {
  const std::lock_guard lock(mutex_);
  release_until(0);
  peak_live_ = live_ + held_free_;  // parts of huge pages stay
}

std::size_t Arena::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_ + held_free_;
}

// Extends the last free range, or creates one at the top, so that it has `bytes` bytes.
bool Arena::grow(std::size_t bytes) {
  char* from = top_;
  if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second.bytes == top_)
    from = free_.rbegin()->first;
  const std::size_t room = end_ - from;
  if (bytes > room) return false;
  char* const new_top = from + bytes;
  if (new_top > writable_) {
    char* const writable = std::min(end_, round_up(new_top, huge_page));
    if (mprotect(writable_, writable - writable_, PROT_READ | PROT_WRITE) != 0) return false;
    writable_ = writable;
  }
  const std::size_t added = new_top - top_;
  insert(top_, {added, 0});
  top_ = new_top;
  return true;
}

// Preallocates map nodes. Live blocks separate free ranges, so there is at most one more free range than
// blocks. The block being allocated and a range added by grow() bring the bound to blocks_ + 3.
void Arena::prepare() {
  while (free_.size() + spare_.size() < blocks_ + 3) spare_.emplace(nullptr, Range{});
  while (by_size_.size() + spare_sizes_.size() < blocks_ + 3) spare_sizes_.emplace(0, nullptr);
}

// Adds a free range and merges it with its neighbors.
void Arena::insert(char* begin, Range range) noexcept {
  const auto merge = [&range](const Range& neighbor) {
    range.bytes += neighbor.bytes;
    range.held += neighbor.held;
  };
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + range.bytes == next->first) {
    const auto after = std::next(next);
    merge(remove(next));
    next = after;
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes == begin) {
      begin = before->first;
      merge(remove(before));
    }
  }
  auto entry = spare_.extract(spare_.begin());
  entry.key() = begin;
  entry.mapped() = range;
  free_.insert(std::move(entry));
  auto size = spare_sizes_.extract(spare_sizes_.begin());
  size.value() = {range.bytes, begin};
  by_size_.insert(std::move(size));
  held_free_ += range.held;
}

// Removes a free range and keeps its map nodes for reuse.
Arena::Range Arena::remove(std::map<char*, Range>::iterator at) noexcept {
  const Range range = at->second;
  spare_sizes_.insert(by_size_.extract({range.bytes, at->first}));
  spare_.insert(free_.extract(at));
  held_free_ -= range.held;
  return range;
}

// Visits the largest ranges first, because they contain the most whole huge pages, and only whole huge pages
// are released. Releases no more than the limit requires, from the end of each range, because blocks are
// allocated from its beginning.
void Arena::release_until(std::size_t limit) noexcept {
  for (auto it = by_size_.rbegin(); it != by_size_.rend() && live_ + held_free_ > limit; ++it) {
    const auto [bytes, begin] = *it;
    Range& range = free_.find(begin)->second;
    char* const first = round_up(begin, huge_page);
    char* const last = begin + bytes - reinterpret_cast<std::uintptr_t>(begin + bytes) % huge_page;
    if (range.held == 0 || first >= last) continue;
    // It is unknown which pages are backed: the last `wanted` bytes contain at least `surplus` backed bytes.
    const std::size_t surplus = live_ + held_free_ - limit;
    const std::size_t wanted = round_up(bytes - range.held + surplus, huge_page);
    char* const from = wanted < static_cast<std::size_t>(last - first) ? last - wanted : first;
    const std::size_t released = last - from;
    if (madvise(from, released, MADV_DONTNEED) != 0) continue;
    const std::size_t held = std::min(range.held, bytes - released);
    held_free_ -= range.held - held;
    range.held = held;
  }
}

}}  // namespace sar
