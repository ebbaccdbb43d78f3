// SPDX-License-Identifier: MIT

/// Tables of numbers with commas between them, as OGB and the TU collection have them.
#pragma once

#include "line_blocks.hpp"

#include <sar/comm/rows/partition_book.hpp>
#include <sar/config.hpp>
#include <sar/core/files/data_array.hpp>

#include <cstdint>
#include <limits>
#include <string>
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
  Index rows = -1;  ///< that the table must have; -1: any number
  /// Ends the message about another number of rows, after "there are 8": " edges, expected 7".
  std::string wrong_rows = {};
};

/// Local. The number of fields of the first line that is not empty; 0 when there is none.
Index count_columns(std::string_view beginning);

/// Local. Replaces `values` by the numbers of whole lines; empty lines do not count. An integer may be
/// written as 3.0, as pandas writes integers with gaps. Throws LineError, and NotAnInteger for a field that
/// is a number but no integer. T: std::int64_t, or float and double: finite as `real` unless missing.
template <class T>
TextCounts parse_table(std::string_view text, const TableFormat& format, std::vector<T>& values);

/// Collective. Reads a file in blocks (read_lines): `take` gets the numbers of this rank's block and its
/// place; every rank calls it the same number of times. Returns the number of rows. Throws InputError, the
/// same on every rank, also for a wrong number of rows. T: as parse_table.
template <class T>
Index read_table(const Communicator& comm, const std::string& path, const TableFormat& format,
                 Index block_bytes, FunctionRef<void(std::vector<T>& values, const BlockPlace& at)> take);

/// Collective. The rows of a file as the book divides them over the ranks, or without one in even slices. T:
/// as parse_table. Throws InputError as read_table.
template <class T>
DataArray read_table_rows(const Communicator& comm, const std::string& path, const TableFormat& format,
                          Index block_bytes, const PartitionBook* book = nullptr);
/// Collective. All rows of a file of one integer a line, on all ranks. Throws InputError as read_table.
std::vector<Index> read_list(const Communicator& comm, const std::string& path, const TableFormat& format,
                             Index block_bytes);

/// Collective. The number of columns of a file, which is that of its first row; at least 1.
Index count_columns(const Communicator& comm, const std::string& path);

}  // namespace sar::formats
