// SPDX-License-Identifier: MIT

/// HaloFormat: the number format of halo rows and their gradients in messages.
///
///     exact   unchanged: 4 bytes per number, 8 in double precision
///     bf16    each number rounded to the nearest bfloat16, ties to even: 2 bytes per number; relative
///             error at most 2^-8. Numbers beyond 3.39e38 become infinite
///     int8    each row as multiples q of its own scale s = max_j |x_j| / 127: 1 byte per number and 4 per
///             row. Stochastic rounding: q = floor(x_j / s + u) with u uniform in [0, 1), so that the
///             expected value of q s is x_j; the error is below s. A row with NaN or infinity arrives as
///             NaN. Not in double precision
///
/// Sums are computed in `real` from unpacked rows. Rows that a rank owns are read without rounding.
#pragma once

#include <sar/core/text.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

enum class HaloFormat { exact, bf16, int8 };

/// What a format is called, and what its rows need.
struct HaloFormatTraits {
  HaloFormat value;
  const char* name;
  Index bytes_per_number, bytes_per_row;  ///< in messages
  double max_error;                       ///< of a number, relative to the largest of its row
  bool in_double;                         ///< goes with double precision
  bool reproducible;                      ///< goes with GraphOptions::reproducible
};

inline constexpr HaloFormatTraits halo_format_traits[] = {
    {HaloFormat::exact, "exact", sizeof(real), 0, 0, true, true},
    {HaloFormat::bf16, "bf16", 2, 0, 0x1p-8, true, false},
    {HaloFormat::int8, "int8", 1, 4, 1.0 / 127, false, false},
};

static_assert(are_in_order(halo_format_traits));

[[nodiscard]] constexpr const HaloFormatTraits& traits_of(HaloFormat format) noexcept {
  return halo_format_traits[static_cast<std::size_t>(format)];
}

/// Returns the name, for example "bf16".
[[nodiscard]] constexpr const char* to_string(HaloFormat format) noexcept {
  return traits_of(format).name;
}

/// Returns all formats with their names.
[[nodiscard]] inline std::vector<std::pair<std::string, HaloFormat>> halo_formats() {
  return named_values(halo_format_traits);
}

/// Returns the bytes of a row of row_size numbers in messages.
[[nodiscard]] constexpr Index wire_bytes(HaloFormat format, Index row_size) noexcept {
  return row_size * traits_of(format).bytes_per_number + traits_of(format).bytes_per_row;
}

}}  // namespace sar
