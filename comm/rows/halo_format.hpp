/// HaloFormat: what halo rows and their gradients are rounded to while they travel.
///
///     exact   not at all: 4 bytes a number, 8 in double precision
///     bf16    each number to the nearest bfloat16, ties to even: 2 bytes; relative error at most 2^-8. Numbers
///             beyond 3.39e38 become infinite
///     int8    each row to whole multiples q of a scale s of its own, s = max_j |x_j| / 127: 1 byte a number and
///             4 a row. x_j / s is rounded up or down at random, q = floor(x_j / s + u) with u uniform in
///             [0, 1), so that the expected value of q s is x_j; the error is below s. A row with NaN or
///             infinity arrives as NaN. Not in double precision
///
/// Sums are taken in `real`, of rows that were unpacked. Rows that a rank owns are read as they are.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

enum class HaloFormat { exact, bf16, int8 };

/// "bf16"
[[nodiscard]] constexpr const char* to_string(HaloFormat format) noexcept {
  return format == HaloFormat::exact ? "exact" : format == HaloFormat::bf16 ? "bf16" : "int8";
}

/// Bytes of a row of so many numbers while it travels.
[[nodiscard]] constexpr Index wire_bytes(HaloFormat format, Index row_size) noexcept {
  if (format == HaloFormat::bf16) return 2 * row_size;
  if (format == HaloFormat::int8) return row_size + 4;
  return row_size * static_cast<Index>(sizeof(real));
}

}  // namespace sar::inline SAR_PRECISION
