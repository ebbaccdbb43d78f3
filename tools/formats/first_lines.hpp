// SPDX-License-Identifier: MIT

/// The first lines of a text, which say how to read it.
#pragma once

#include "formats/packed/parquet_table.hpp"
#include "line_blocks.hpp"

#include <sar/comm/communicator.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// Parts of a text. A line with data is neither empty nor a comment.
struct FirstLines {
  struct Line {
    std::string_view text;
    Index number;  ///< from 0
    Index end;     ///< the byte behind it
  };
  std::string_view text;
  bool is_parquet = false;         ///< there are commas between the fields, and the first line has names
  std::vector<Line> comments;      ///< among and before the lines
  std::vector<Line> lines;         ///< with data, at most 50
  Index comments_before_data = 0;  ///< how many comments stand before all lines
  std::optional<char> separator;   ///< of Excel's first line "sep=;", which is neither data nor a comment

  /// Where the line after the first one with data begins, or that one itself.
  [[nodiscard]] TextPosition begin(bool behind_first) const;
};
FirstLines first_lines(std::string_view text, bool is_parquet = false);

/// Throws LineError, as require_no_row(), for a comment before all lines with data that begins with a number,
/// or has a word with the same sign, or one of these lines. Others may name the columns. Used where the
/// lines are rows of so many fields.
void require_no_rows_in_comments(const FirstLines& first, char separator, Index num_fields);

/// Commas in Parquet; the separator that "sep=;" says; or else guess_separator(first.lines).
char separator_of(const FirstLines& first);

/// The beginning of a file with its first 50 lines of data, or with fewer where they are long. Collective;
/// throws InputError, the same on every rank, for a file that is not text, and for a field in quotes that
/// goes on in the next line.
std::string read_first_lines(const Communicator& comm, const std::string& path, const std::string& expected);

/// Collective. Returns guess(first lines) of read_first_lines, where a LineError gets the file.
template <class Guess>
auto guess_from_first_lines(const Communicator& comm, const std::string& path, const std::string& expected,
                            const Guess& guess) {
  const std::string text = read_first_lines(comm, path, expected);
  return comm.agree(
      [&] { return with_line_of(path, [&] { return guess(first_lines(text, is_parquet(path))); }); });
}

/// The fields of a line, with their quotes.
std::vector<std::string_view> fields_of(std::string_view line, char separator);

/// Tab, comma or semicolon, if all lines have it outside of quotes; else blanks. Throws LineError if they
/// have comma and semicolon.
char guess_separator(const std::vector<FirstLines::Line>& lines);

/// "comma"
std::string name_of_separator(char separator);

}  // namespace sar::formats
