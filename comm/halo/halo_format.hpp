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

#include <sar/config.hpp>

#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

enum class HaloFormat { exact, bf16, int8 };

/// Returns the name, for example "bf16".
[[nodiscard]] constexpr const char* to_string(HaloFormat format) noexcept {
  switch (format) {
    case HaloFormat::exact:
      return "exact";
    case HaloFormat::bf16:
      return "bf16";
    case HaloFormat::int8:
      return "int8";
  }
  return "";
}

/// Returns all formats with their names.
[[nodiscard]] inline std::vector<std::pair<std::string, HaloFormat>> halo_formats() {
  std::vector<std::pair<std::string, HaloFormat>> all;
  for (const auto format : {HaloFormat::exact, HaloFormat::bf16, HaloFormat::int8})
    all.emplace_back(to_string(format), format);
  return all;
}

/// Returns the bytes of a row of row_size numbers in messages.
[[nodiscard]] constexpr Index wire_bytes(HaloFormat format, Index row_size) noexcept {
  switch (format) {
    case HaloFormat::exact:
      return row_size * static_cast<Index>(sizeof(real));
    case HaloFormat::bf16:
      return 2 * row_size;
    case HaloFormat::int8:
      return row_size + 4;
  }
  return 0;
}

}}  // namespace sar
