// SPDX-License-Identifier: MIT

/// Numbers beside float and double: 16-bit formats, and ExactSum.
#pragma once

#include <sar/config.hpp>

#include <cmath>
#include <cstdint>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "sar: -ffast-math, -ffinite-math-only and -Ofast break exact sums and NaN checks: add -fno-fast-math"
#endif

namespace sar { inline namespace SAR_PRECISION {

// The 16-bit floating-point formats of files, messages and rows in mixed precision, and conversions between
// them and float: IEEE 754 binary16 ("half": 5 exponent bits, 10 fraction bits) and bfloat16 (8 exponent
// bits, 7 fraction bits; the upper half of a float).
//
// Narrowing rounds once, to nearest, ties to even; values beyond the largest finite number become infinite.
// Widening is exact.

/// A bfloat16 number: the upper half of a float.
struct Bfloat16 {
  std::uint16_t bits;
};

/// Returns the value of a binary16 number.
[[nodiscard]] float half_to_float(std::uint16_t half) noexcept;
/// Returns `value` rounded to binary16.
[[nodiscard]] std::uint16_t float_to_half(double value) noexcept;

/// Returns the value of a bfloat16 number.
[[nodiscard]] float bfloat16_to_float(std::uint16_t value) noexcept;
/// Returns `value` rounded to bfloat16.
[[nodiscard]] std::uint16_t float_to_bfloat16(double value) noexcept;

// ExactSum: a sum in two doubles that does not depend on the order of its terms.

/// How a kernel adds the terms of a sum: in `real` and double precision, so that its last bits depend on
/// their order, or as ExactSum.
enum class Accumulator { rounded, exact };

/// Makes the compiler forget how x, a number or a vector, was computed: it does not fuse the multiplication
/// that made x with an addition, nor take a multiplication of x out of a branch where it would be fused with
/// one.
template <class V>
[[gnu::always_inline]] inline void forget_origin(V& x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
}

/// Adds x, which is no product, to the sum high + low, as ExactSum::add(); V: double, or a vector of doubles.
template <class V>
[[gnu::always_inline]] inline void add_number_exactly(V& high, V& low, const V& x) {
  const V sum = high + x;
  const V part = sum - high;
  low += (high - (sum - part)) + (x - part);
  high = sum;
}
/// The same for any x.
template <class V>
[[gnu::always_inline]] inline void add_exactly(V& high, V& low, V& x) {
  forget_origin(x);
  add_number_exactly(high, low, x);
}

/// The sum is high + low: additions to `high` are rounded, and `low` is the sum of their rounding errors
/// (TwoSum: Knuth, The Art of Computer Programming 2, section 4.2.2; the sum: Ogita, Rump, Oishi, SIAM J.
/// Sci. Comput. 26, 2005). It is exact, and so independent of the order, as long as no bit of a term lies
/// more than 106 - log2(terms) bits below the largest partial sum. Bits further down are lost: relative to
/// the sum they are below 2^-80, so that a sum rounded to `real` depends on them only if it is that near to
/// the middle between two numbers. Infinite and NaN as in a plain sum.
///
/// @code
/// ExactSum sum;
/// for (const double x : {1e16, 1.0, -1e16}) sum.add(x);
/// const double one = sum.value();  // 1, where a plain sum may be 0
/// @endcode
///
/// Its functions are always inlined: kernels for several instruction sets call them.
struct ExactSum {
  double high = 0;
  double low = 0;

  [[gnu::always_inline]] void add(double x) { add_exactly(high, low, x); }
  [[gnu::always_inline]] void add(const ExactSum& other) {
    add(other.high);
    low += other.low;
  }
  /// Returns the sum, rounded to double.
  [[nodiscard, gnu::always_inline]] double value() const { return std::isfinite(high) ? high + low : high; }
};
}}  // namespace sar
