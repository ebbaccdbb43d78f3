/// Requests of memory that a product reads next, a few cache lines at a time: a burst of them would stall the
/// product, because a core has few cache misses under way. For implementation files of core/.
#pragma once

#include <sar/config.hpp>

#include <algorithm>
#include <span>

namespace sar::inline SAR_PRECISION {

inline constexpr Index cache_line = 64 / static_cast<Index>(sizeof(real));

/// Memory that is read soon after a product, and requested meanwhile.
struct ReadAhead {
  std::span<const real> first, second;
};

/// Requests memory for the second cache, in equal parts.
class Requests {
 public:
  Requests(const ReadAhead& ahead, Index parts)
      : streams_{Stream(ahead.first, parts), Stream(ahead.second, parts)} {}
  void next_part() {
    for (Stream& s : streams_) {
      const real* end = std::min(s.end, s.next + s.step);
      for (const real* line = s.next; line < end; line += cache_line) __builtin_prefetch(line, 0, 2);
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

}  // namespace sar
