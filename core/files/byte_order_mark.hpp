// SPDX-License-Identifier: MIT

/// Local. The byte order mark at the beginning of a text, which editors and spreadsheets write ("CSV
/// UTF-8").
#pragma once

#include <sar/config.hpp>

#include <string>
#include <string_view>

namespace sar { inline namespace SAR_PRECISION {

/// The number of bytes at the beginning of a text that decide whether it has a mark.
inline constexpr Index max_byte_order_mark = 4;

/// Returns the number of bytes of the mark with which a text in UTF-8 begins: 3, or 0 without a mark. Throws
/// InputError, beginning with `path`, for the mark of UTF-16 or UTF-32.
Index byte_order_mark(std::string_view beginning, const std::string& path);

}}  // namespace sar
