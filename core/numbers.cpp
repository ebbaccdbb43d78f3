// SPDX-License-Identifier: MIT

// narrow() scales the magnitude so that its last fraction bit counts 1, rounds it to an integer (ties to
// even) and adds it to the exponent field: a carry gives the next exponent. half_to_float() moves the bits
// to their places in a float and multiplies by a power of two, which is right for subnormal numbers, too.
#include <sar/core/numbers.hpp>

#include <algorithm>
#include <bit>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Rounds `value` to a 16-bit format with 1 sign bit, `fraction_bits` fraction bits and the remaining bits
/// for the exponent.
template <int fraction_bits>
std::uint16_t narrow(double value) noexcept {
  constexpr int bias = (1 << (14 - fraction_bits)) - 1;
  constexpr int infinity = (0x7fff >> fraction_bits) << fraction_bits;
  constexpr int quiet_nan = infinity | 1 << (fraction_bits - 1);
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | quiet_nan);
  if (magnitude >= std::ldexp(1, bias + 1)) return static_cast<std::uint16_t>(sign | infinity);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // The significand has fraction_bits + 1 bits at this exponent, fewer for a subnormal number. A carry out of
  // the significand increments the exponent field, and turns the largest finite number into infinity.
  const auto significand = static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  return static_cast<std::uint16_t>(sign | (significand + ((exponent + bias - 1) << fraction_bits)));
}

}  // namespace

float half_to_float(std::uint16_t half) noexcept {
  // The exponent field of the half, read as a float's, is too small by 127 - 15: multiply by 2^112.
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  const std::uint32_t sign = (half & 0x8000u) << 16;
  if ((half & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | magnitude);
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1.0p112f));
}

std::uint16_t float_to_half(double value) noexcept {
  return narrow<10>(value);
}

float bfloat16_to_float(std::uint16_t value) noexcept {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

std::uint16_t float_to_bfloat16(double value) noexcept {
  return narrow<7>(value);
}
}}  // namespace sar
