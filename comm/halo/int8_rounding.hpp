// SPDX-License-Identifier: MIT

/// The stochastic rounding of HaloFormat::int8. For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>
#include <sar/core/simd/independent_iterations.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <sar/core/isa/isa_begin.hpp>

namespace int8_rounding {

inline constexpr int most = 127;  // the largest multiple of a scale

/// Returns max_j |x_j| / 127, clamped so that 127 times it is finite; 0 for a row of zeros, NaN for a row
/// that is not finite.
inline float scale_of(const real* row, Index n) {
  // The largest bit pattern of |x_j|: patterns are ordered like the numbers, then infinity, NaN.
  std::uint32_t largest = 0;
  for (Index j = 0; j < n; ++j)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(static_cast<float>(row[j])) & 0x7fffffffu);
  if (largest >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  if (largest == 0) return 0;
  using Limits = std::numeric_limits<float>;
  constexpr float largest_scale = Limits::max() / most * (1 - 0x1p-23f);
  return std::clamp(std::bit_cast<float>(largest) / most, Limits::min(), largest_scale);
}

/// Computes, for n columns of a row with the scale s > 0 and the draws u_j = floor(words_j / 2^8) / 2^24,
///
///     q_j = floor(x_j / s) + (x_j / s - floor(x_j / s) + u_j >= 1)
///
/// clamped to -127 .. 127. A multiple of s is not changed by any draw, and |q_j s - x_j| < s: for that, the
/// quotient is divided, which rounds once, and the draw is added to its fraction only.
inline void round_columns(const real* x, Index n, float s, const std::uint32_t* words, std::int8_t* q) {
  SAR_INDEPENDENT_ITERATIONS
  for (Index j = 0; j < n; ++j) {
    const float u = static_cast<float>(static_cast<std::int32_t>(words[j] >> 8)) * 0x1p-24f;
    const float quotient = static_cast<float>(x[j]) / s;
    const float below = std::floor(quotient);
    const int multiple = static_cast<int>(below) + (quotient - below + u >= 1 ? 1 : 0);
    q[j] = static_cast<std::int8_t>(std::clamp(multiple, -most, most));
  }
}

}  // namespace int8_rounding

#include <sar/core/isa/isa_end.hpp>
