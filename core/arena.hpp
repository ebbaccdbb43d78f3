/// Arena: large blocks of memory whose pages stay with the program after use.
///
/// A page that was just mapped costs a fault and a memset at its first touch; a training step that maps its
/// activations anew pays this for every page, every time. The arena takes blocks from one range of addresses,
/// which it reserves once and which is backed by 2 MB pages where the system has them. It keeps the blocks
/// that are given back: neighbouring free ranges merge, and a request takes the smallest free range that
/// holds it (best fit; Knuth, TAOCP 1, 2.5). A range of more than four times the request stays whole for a
/// request of its size, as long as new addresses in place of a part of it reach no further than 1.5 times the
/// largest sum of live blocks so far. A program that repeats its requests gets the same addresses again, and touches
/// new pages only where the bound had them returned.
///
/// Bound: the arena holds at most 1.05 times the largest sum of live blocks so far, plus 16 MB. Where
/// fragmentation would exceed that, it returns to the system as many pages of the largest free ranges as the
/// excess, and keeps their addresses. Touching a page of 2 MB again costs about 0.2 ms.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace sar::inline SAR_PRECISION {

class Arena {
 public:
  /// Blocks begin at multiples of this, and their sizes are rounded up to one.
  static constexpr std::size_t granularity = 4096;

  /// Reserves addresses, not memory: at most `reserve_bytes`, less where the system limits them.
  explicit Arena(std::size_t reserve_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// An uninitialised block; null when the addresses or the memory are used up. Throws std::bad_alloc when
  /// there is no memory for the arena's own lists.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Takes back a block of allocate() with the same size.
  void deallocate(void* block, std::size_t bytes) noexcept;
  [[nodiscard]] bool contains(const void* block) const noexcept;

  /// Gives the pages of all free ranges back to the system.
  void release_free() noexcept;
  /// Upper bound of the bytes backed by pages: live blocks and free ranges that were used before.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Range {
    std::size_t bytes;
    std::size_t held;  // at most so many of them are backed by pages
  };

  bool grow(std::size_t bytes);
  void prepare();
  void insert(char* begin, Range range) noexcept;
  Range remove(std::map<char*, Range>::iterator at) noexcept;
  void release_until(std::size_t held_limit) noexcept;

  mutable std::mutex mutex_;
  char* mapping_ = nullptr;  // as the system gave it
  std::size_t mapping_bytes_ = 0;
  char* begin_ = nullptr;     // first 2 MB boundary
  char* top_ = nullptr;       // never used from here on
  char* writable_ = nullptr;  // not accessible from here on
  char* end_ = nullptr;
  std::map<char*, Range> free_;                      // no two of them touch
  std::set<std::pair<std::size_t, char*>> by_size_;  // the same ranges, smallest first, then lowest address
  // Entries for ranges to come, so that giving a block back takes no memory.
  std::multimap<char*, Range> spare_;
  std::multiset<std::pair<std::size_t, char*>> spare_sizes_;
  std::size_t blocks_ = 0;  // live
  std::size_t live_ = 0;
  std::size_t peak_live_ = 0;
  std::size_t held_free_ = 0;
};

}  // namespace sar
