// SPDX-License-Identifier: MIT

/// Local. A text that is a table: its columns, what they mean, and how a field becomes numbers.
#pragma once

#include "column_names.hpp"
#include "line_blocks.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sar::formats {

/// A column of a table of edges or nodes: what it means, and how its fields become numbers.
struct Column {
  std::string name = {};  ///< in the header; empty: none
  ColumnRole role = ColumnRole::ignored;
  std::string field = {};  ///< the data that it becomes, perhaps with other columns; empty: none
  std::string note = {};   ///< why it is ignored, where its name does not say it: "row numbers"
  // of nodes:
  /// The values of one-hot columns, and of labels that are names: category i is the number i. Sorted.
  std::vector<std::string> categories = {};
  Index list_length = 0;     ///< features: a field is a list of so many numbers; 0: it is one number
  std::string missing = {};  ///< labels: this text is none

  /// How many numbers a field becomes.
  [[nodiscard]] Index width() const noexcept {
    if (field.empty()) return 0;
    if (list_length > 0) return list_length;
    return role == ColumnRole::one_hot ? static_cast<Index>(categories.size()) : 1;
  }
};

/// The columns of a text, and how it is cut into fields.
struct TextTable {
  char separator = ',';  ///< ' ': any number of blanks
  std::vector<Column> columns = {};
  TextPosition begin = {};  ///< of the first line behind the header

  [[nodiscard]] Index width() const noexcept;                 ///< numbers of a row
  [[nodiscard]] std::size_t place_of(ColumnRole role) const;  ///< the first column of the role
};

/// "source: column 2 'from', target: column 3 'to', weight: none, ignored: column 1 (row numbers)", or of
/// nodes "key: id; labels: mature (2: False, True); features: days, views; ignored: partner".
std::string describe(const std::vector<Column>& columns, bool of_edges);
/// "column 2 'to'"
std::string column_text(Index column, std::string_view name);
/// The columns of this name, or almost this name (same_name); or x[0], x[1], ... of a list x; or the one of
/// this number from 1; or none.
std::vector<Index> find_columns(const std::vector<Column>& columns, const std::string& name);
/// The data that the columns become, each with the places of its numbers in a row.
std::vector<std::pair<std::string, std::vector<Index>>> field_slots(const std::vector<Column>& columns);

/// Whether a field of a column has no label: see is_missing_field and Column::missing.
bool is_unlabelled(const Column& column, std::string_view field) noexcept;

/// Appends the numbers of a field, `column.width()` of them. true and false are 1 and 0; missing labels and
/// parts of a split are NaN, and a missing category is all 0. Throws LineError for other fields.
void append_numbers(const Column& column, std::string_view field, Index line, std::vector<double>& numbers);

/// Throws LineError: "column 'x' is 'y', expected a number".
[[noreturn]] void refuse_field(const Column& column, std::string_view field, Index line,
                               const std::string& expected);

/// How many numbers a list has, such as "0.5,1" and "[0.5 1]"; nothing for another text.
std::optional<Index> count_in_list(std::string_view field);

/// A number, or true and false as 1 and 0; nothing: it is another word.
std::optional<double> number_or_flag(std::string_view field) noexcept;

}  // namespace sar::formats
