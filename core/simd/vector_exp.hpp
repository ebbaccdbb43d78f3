// SPDX-License-Identifier: MIT

/// exp, exp(x) - 1 and log(1 + exp(-x)) of a vector of lanes.hpp or of a single number, inlined into kernels.
/// For implementation files.
///
/// A number has the same result in every lane and as a scalar. With n the integer nearest to x / log 2 and r
/// = x - n log 2, |r| <= 0.35:
///
///     exp(x) = 2^n (1 + r + r^2/2! + ... + r^d/d!)     d = 7 in float, 13 in double
///
///     exp(x) - 1 = 2^n (r + r^2/2! + ...) + (2^n - 1)
///
/// Errors are at most two units in the last place, those of exp(x) - 1 three. Results of exp below the
/// smallest normal number are 0. The polynomial takes one fused multiply-add per coefficient (Horner); n is
/// added to the exponent bits as an integer.
#pragma once

#include <sar/core/simd/row_sums.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {
namespace vector_exp {

using Integer = std::conditional_t<sizeof(real) == 4, std::uint32_t, std::uint64_t>;  // wraps around
using IntegerVector [[gnu::vector_size(64)]] = Integer;
template <class T>
using Bits = std::conditional_t<std::is_same_v<T, real>, Integer, IntegerVector>;

inline constexpr bool is_float = sizeof(real) == 4;
inline constexpr int mantissa_bits = std::numeric_limits<real>::digits - 1;
/// Adding this to a number of moderate size puts the nearest integer into the lowest mantissa bits.
inline constexpr real rounding = real{3} * static_cast<real>(Integer{1} << (mantissa_bits - 1));
// log 2 = log2_high + log2_low; n * log2_high is exact
inline constexpr real log2_high = is_float ? real(0x1.63p-1) : real(0x1.62e42fefa38p-1);
inline constexpr real log2_low = is_float ? real(-0x1.bd0105c610ca8p-13) : real(0x1.ef35793c7673p-45);
inline constexpr real one_by_log2 = real(0x1.71547652b82fep+0);
// arguments with normal results lie in [smallest, largest]
inline constexpr real smallest = is_float ? real(-87.33654) : real(-708.39641853226408);
inline constexpr real largest = is_float ? real(88.72283) : real(709.78271289338397);

template <int N>
inline constexpr real one_by_factorial = one_by_factorial<N - 1> / N;
template <>
inline constexpr real one_by_factorial<0> = 1;

/// 1/N! + r/(N+1)! + ... + r^(d-N)/d! by Horner's rule
template <int N, class T>
[[gnu::always_inline]] inline T series(const T& r) {
  if constexpr (N == (is_float ? 7 : 13)) {
    return T{} + one_by_factorial<N>;
  } else {
    return series<N + 1>(r) * r + one_by_factorial<N>;
  }
}

/// x = n log 2 + r
template <class T>
struct Reduced {
  [[gnu::always_inline]] explicit Reduced(const T& x) {
    const T shifted = x * one_by_log2 + rounding, n = shifted - rounding;
    r = (x - n * log2_high) - n * log2_low;
    exponent = __builtin_bit_cast(Bits<T>, shifted) << mantissa_bits;
  }
  /// value 2^n
  [[gnu::always_inline]] T times_power(const T& value) const {
    return __builtin_bit_cast(T, __builtin_bit_cast(Bits<T>, value) + exponent);
  }
  T r;
  Bits<T> exponent;  // n in the exponent bits
};

/// value for x in [smallest, largest], `below` for smaller ones, infinity for larger ones, NaN for NaN
template <class T>
[[gnu::always_inline]] inline T in_range(const T& x, const T& value, const T& below) {
  const T infinite = T{} + std::numeric_limits<real>::infinity();
  const T above = x > largest ? infinite : x;  // NaN stays NaN
  const T not_above = x < smallest ? below : value;
  return x <= largest ? not_above : above;
}

}  // namespace vector_exp

/// Returns exp(x): infinity for x > largest, 0 for x < smallest, NaN for NaN.
template <class T>
[[gnu::always_inline]] inline T exp(const T& x) {
  const vector_exp::Reduced<T> of(x);
  return vector_exp::in_range(x, of.times_power(vector_exp::series<0>(of.r)), T{});
}

/// Returns exp(x) - 1, accurate near 0: infinity for x > largest, -1 for x < smallest, NaN for NaN.
template <class T>
[[gnu::always_inline]] inline T expm1(const T& x) {
  const vector_exp::Reduced<T> of(x);
  const T half = T{} + real(0.5), scale = of.times_power(half);  // 2^(n - 1), because 2^n may be too large
  const T value = 2 * (scale * (of.r * vector_exp::series<1>(of.r)) + (scale - half));
  return vector_exp::in_range(x, value, T{-2 * half});
}

/// Returns log(1 + exp(-x)) for x >= 0, with y = exp(-x), by
///
///     log(1 + y) = 2 (s + s^3/3 + s^5/5 + ...),  s = y / (2 + y) <= 1/3
template <class T>
[[gnu::always_inline]] inline T log1p_exp_minus(const T& x) {
  constexpr int terms = vector_exp::is_float ? 8 : 17;
  const T y = exp(T{-x});
  const T s = y / (y + 2);
  const T square = s * s;
  T sum = T{} + real{1} / (2 * terms - 1);
  for (int k = terms - 2; k >= 0; --k) sum = sum * square + real{1} / static_cast<real>(2 * k + 1);
  return 2 * s * sum;
}

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>
