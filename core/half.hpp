// SPDX-License-Identifier: MIT

/// The 16-bit floating-point formats of files, messages and rows in mixed precision, and conversions between
/// them and float: IEEE 754 binary16 ("half": 5 exponent bits, 10 fraction bits) and bfloat16 (8 exponent
/// bits, 7 fraction bits; the upper half of a float).
///
/// Narrowing rounds once, to nearest, ties to even; values beyond the largest finite number become infinite.
/// Widening is exact.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

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

}}  // namespace sar
