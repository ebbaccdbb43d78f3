// SPDX-License-Identifier: MIT

/// Arena: a pool for large blocks of memory that keeps its pages between uses.
///
/// The first touch of a newly mapped page costs a page fault and a memset. A training step that maps its
/// activations anew pays this for every page in every step. The arena reserves one range of addresses, backed
/// by 2 MB pages where the system has them, and allocates its blocks there. Freed blocks stay mapped:
/// adjacent free ranges are merged, and an allocation takes the smallest free range that is large enough
/// (best fit; Knuth, TAOCP 1, 2.5). A free range of more than four times the size is not split, as long as
/// the top of the used addresses stays within 1.5 times the peak: it is kept for an allocation of its size. A
/// program that repeats its allocations therefore gets the same addresses again, without page faults unless
/// the bound below released the pages.
///
/// Bound: the arena holds at most 65/64 of the peak, plus 16 MB, where the peak is the largest sum of live
/// blocks since the last release_free(). If fragmentation would exceed this, it releases the excess pages of
/// the largest free ranges to the system and keeps their addresses.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

class Arena : NonCopyable {
 public:
  /// Alignment of blocks in bytes; sizes are rounded up to a multiple of it.
  static constexpr std::size_t granularity = 4096;

  /// Reserves addresses, not memory: at most `reserve_bytes`, and less where the system limits them.
  explicit Arena(std::size_t reserve_bytes);
  ~Arena();

  /// Returns an uninitialized block, or null if addresses or memory are exhausted. Throws std::bad_alloc if
  /// the arena's own lists cannot grow.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Frees a block of allocate(); `bytes` is the size it was allocated with.
  void deallocate(void* block, std::size_t bytes) noexcept;
  /// Frees all but the first `to` bytes of such a block, which is one of `to` bytes then; to <= bytes.
  void shrink(void* block, std::size_t bytes, std::size_t to) noexcept;
  /// Returns whether `block` lies in the arena's addresses.
  [[nodiscard]] bool contains(const void* block) const noexcept;

  /// Releases the pages of all free ranges to the system; the bound is that of what is used from now on.
  void release_free() noexcept;
  /// Returns an upper bound on the bytes backed by pages: live blocks and free ranges used before.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Range {
    std::size_t bytes;
    std::size_t held;  // upper bound on the bytes backed by pages
  };

  bool grow(std::size_t bytes);
  void prepare();
  void insert(char* begin, Range range) noexcept;
  Range remove(std::map<char*, Range>::iterator at) noexcept;
  void release_until(std::size_t held_limit) noexcept;

  mutable std::mutex mutex_;
  char* mapping_ = nullptr;  // as returned by mmap
  std::size_t mapping_bytes_ = 0;
  char* begin_ = nullptr;     // first 2 MB boundary
  char* top_ = nullptr;       // addresses from here on were never used
  char* writable_ = nullptr;  // addresses from here on are inaccessible
  char* end_ = nullptr;
  std::map<char*, Range> free_;                      // by address; no two are adjacent
  std::set<std::pair<std::size_t, char*>> by_size_;  // the same ranges by size, then by address
  // Preallocated map nodes, so that freeing a block allocates nothing.
  std::multimap<char*, Range> spare_;
  std::multiset<std::pair<std::size_t, char*>> spare_sizes_;
  std::size_t blocks_ = 0;  // number of live blocks
  std::size_t live_ = 0;
  std::size_t peak_live_ = 0;
  std::size_t held_free_ = 0;
};

}}  // namespace sar
