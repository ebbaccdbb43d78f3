/// Floating-point numbers of 16 bits, as files and messages hold them: IEEE 754 binary16 ("half": 5 bits of
/// exponent, 10 of significand) and bfloat16 (8 and 7, the upper half of a float).
///
/// A number that is narrowed is rounded once, to the nearest, ties to even; beyond the largest it becomes
/// infinite. Every value of 16 bits comes back as itself.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

[[nodiscard]] float half_to_float(std::uint16_t half) noexcept;
[[nodiscard]] std::uint16_t float_to_half(double value) noexcept;

[[nodiscard]] float bfloat16_to_float(std::uint16_t value) noexcept;
[[nodiscard]] std::uint16_t float_to_bfloat16(double value) noexcept;

}  // namespace sar
