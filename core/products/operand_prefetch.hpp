// SPDX-License-Identifier: MIT

/// Prefetches of memory that is read after a product, a few cache lines at a time: a burst of them would
/// stall the product, because a core has few cache misses in flight. For implementation files of core/.
#pragma once

#include <sar/core/simd/prefetch.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Memory that is read after a product, and prefetched during it.
struct ReadAhead {
  std::span<const std::byte> first, second;
};

/// Returns the memory of n numbers.
template <class Number>
std::span<const std::byte> memory_of(const Number* numbers, Index n) {
  return {reinterpret_cast<const std::byte*>(numbers), static_cast<std::size_t>(n) * sizeof(Number)};
}

/// Prefetches memory to the second-level cache, in equal parts.
class OperandPrefetch {
 public:
  OperandPrefetch(const ReadAhead& ahead, Index parts)
      : streams_{Stream(ahead.first, parts), Stream(ahead.second, parts)} {}
  void next_part() {
    for (Stream& s : streams_) {
      const Index bytes = std::min<Index>(s.end - s.next, s.step);
      prefetch_bytes(s.next, bytes);
      s.next += bytes;
    }
  }

 private:
  struct Stream {
    Stream(std::span<const std::byte> memory, Index parts)
        : next(memory.data()),
          end(next + memory.size()),
          step((static_cast<Index>(memory.size()) / std::max<Index>(parts, 1) / line + 1) * line) {}
    static constexpr Index line = 64;
    const std::byte *next, *end;
    Index step;
  };
  Stream streams_[2];
};
}}  // namespace sar
