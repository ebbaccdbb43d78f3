// SPDX-License-Identifier: MIT

/// Tables in Parquet files, read as text.
#pragma once

#include <sar/config.hpp>
#include <sar/core/files/file.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// Local. Whether a path is a Parquet file by its first bytes, or a directory that has files called .parquet.
bool is_parquet(const std::string& path);

/// One Parquet file, or all files called .parquet of a directory in the order of their names, as a table with
/// commas between its fields: a line with the names of the columns, then a line for each row. Numbers have
/// the shortest text that is exact. A missing value is an empty field. Lists of n numbers are n columns,
/// x[0], x[1], ... of the column x. All functions are local and throw InputError.
class ParquetTable : NonCopyable {
 public:
  /// Also throws where sar was built without Apache Arrow.
  static std::unique_ptr<ParquetTable> open(const std::string& path);
  virtual ~ParquetTable() = default;

  /// Consecutive rows of the table, which are stored together.
  struct Group {
    Index first_row = 0, num_rows = 0;
  };
  [[nodiscard]] const std::vector<Group>& groups() const noexcept { return groups_; }
  [[nodiscard]] Index num_rows() const noexcept {
    return groups_.empty() ? 0 : groups_.back().first_row + groups_.back().num_rows;
  }
  [[nodiscard]] Index num_columns() const noexcept { return num_columns_; }
  /// The line of names.
  [[nodiscard]] const std::string& header() const noexcept { return header_; }
  /// The lines of rows [begin, end) of a group, counted from its first, until the next call. The group that
  /// was read last is kept, decoded.
  [[nodiscard]] virtual std::string_view read(Index group, Index begin, Index end) = 0;
  /// The first `bytes` bytes of the text; fewer when there are not so many.
  [[nodiscard]] std::string beginning(Index bytes);

 protected:
  ParquetTable() = default;
  std::vector<Group> groups_;
  std::string header_;
  Index num_columns_ = 0;
};

}  // namespace sar::formats
