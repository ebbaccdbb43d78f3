// SPDX-License-Identifier: MIT

/// SAR_UNROLL unrolls the loop after it, whose number of iterations is a constant, so that the elements of
/// arrays in it are registers. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <algorithm>

#if defined(__clang__)
#define SAR_UNROLL _Pragma("unroll")
#else
#define SAR_UNROLL _Pragma("GCC unroll 16")
#endif

// SAR_INDEPENDENT_ITERATIONS asserts that no iteration of the loop after it reads what another iteration
// writes, so that the compiler vectorizes without checking the arrays for overlap. For implementation files.

#if defined(__clang__)
#define SAR_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define SAR_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace sar { inline namespace SAR_PRECISION {

// Prefetches of rows that a loop will read: gather loops, whose rows the hardware cannot predict, and loops
// over groups of rows, which compute longer than the hardware prefetches ahead.

inline constexpr Index cache_line = 64 / static_cast<Index>(sizeof(real));  ///< numbers in a cache line

/// Returns how many rows of `row_bytes` bytes a gather loop prefetches ahead: 8 KiB.
[[gnu::always_inline]] constexpr inline Index rows_ahead(Index row_bytes) {
  return std::max<Index>((Index{1} << 13) / std::max<Index>(row_bytes, 1), 2);
}

/// Prefetches the cache lines of `bytes` bytes from `from` on; `write` and `locality` as __builtin_prefetch.
template <int write, int locality>
[[gnu::always_inline]] inline void prefetch_lines(const void* from, Index bytes) {
  for (Index b = 0; b < bytes; b += 64)
    __builtin_prefetch(static_cast<const char*>(from) + b, write, locality);
  asm volatile("");  // GCC drops calls of functions that only prefetch
}

/// Prefetches `bytes` bytes from `from` on to the second-level cache, which has more misses in flight than
/// the first: gathers of rows come closer to the memory's bandwidth so.
[[gnu::always_inline]] inline void prefetch_bytes(const void* from, Index bytes) {
  prefetch_lines<0, 2>(from, bytes);
}

/// Prefetches `n` numbers to the second-level cache.
[[gnu::always_inline]] inline void prefetch_row(const real* row, Index n) {
  prefetch_bytes(row, n * static_cast<Index>(sizeof(real)));
}

/// Prefetches `n` numbers to the first-level cache.
[[gnu::always_inline]] inline void prefetch_row_near(const real* row, Index n) {
  prefetch_lines<0, 3>(row, n * static_cast<Index>(sizeof(real)));
}

/// Prefetches the memory of `n` numbers that will be written.
[[gnu::always_inline]] inline void prefetch_row_to_write(const real* row, Index n) {
  prefetch_lines<1, 3>(row, n * static_cast<Index>(sizeof(real)));
}
}}  // namespace sar
