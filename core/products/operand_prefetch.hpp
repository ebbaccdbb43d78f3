/// Prefetches of memory that is read after a product, a few cache lines at a time: a burst of them would
/// stall the product, because a core has few cache misses in flight. For implementation files of core/.
#pragma once

#include <sar/core/simd/prefetch.hpp>

#include <algorithm>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Memory that is read after a product, and prefetched during it.
struct ReadAhead {
  std::span<const real> first, second;
};

/// Prefetches memory to the second-level cache, in equal parts.
class OperandPrefetch {
 public:
  OperandPrefetch(const ReadAhead& ahead, Index parts)
      : streams_{Stream(ahead.first, parts), Stream(ahead.second, parts)} {}
  void next_part() {
    for (Stream& s : streams_) {
      const real* end = std::min(s.end, s.next + s.step);
      prefetch_row(s.next, end - s.next);
      s.next = end;
    }
  }

 private:
  struct Stream {
    Stream(std::span<const real> numbers, Index parts)
        : next(numbers.data()),
          end(next + numbers.size()),
          step((static_cast<Index>(numbers.size()) / std::max<Index>(parts, 1) / cache_line + 1) *
               cache_line) {}
    const real *next, *end;
    Index step;
  };
  Stream streams_[2];
};
}}  // namespace sar
