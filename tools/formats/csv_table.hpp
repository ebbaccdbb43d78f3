// SPDX-License-Identifier: MIT

/// Local. Tables of numbers with commas between them, as OGB has them: from bytes to numbers.
#pragma once

#include "line_blocks.hpp"

#include <sar/config.hpp>

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace sar::formats {

/// What the fields of a table may be.
struct TableFormat {
  Index columns = 1;
  /// An empty field or NaN is a missing value: -1 as an integer, NaN as a floating-point number.
  bool may_miss = false;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();
};

/// The number of fields of the first line that is not empty; 0 when there is none.
Index count_columns(std::string_view beginning);

/// Replaces `values` by the numbers of whole lines; empty lines do not count. An integer may be written
/// as 3.0, as pandas writes integers with gaps. Throws LineError, and NotAnInteger for a field that is a
/// number but no integer. T: std::int64_t, or float and double: finite as `real`
/// unless missing.
template <class T>
TextCounts parse_table(std::string_view text, const TableFormat& format, std::vector<T>& values);

}  // namespace sar::formats
