// SPDX-License-Identifier: MIT

/// Local. What the columns of a table of nodes mean, and how a field becomes a number.
#pragma once

#include "formats/line_blocks.hpp"
#include "formats/source_options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

enum class TableRole : char {
  ignored,
  key,
  labels,
  features,
  one_hot,
  train_mask,
  val_mask,
  test_mask,
  split
};

struct TableColumn {
  std::string name;
  TableRole role = TableRole::ignored;
  /// The values of one-hot columns, and of labels that are names: category i is the number i. Sorted.
  std::vector<std::string> categories = {};
  Index list_length = 0;     ///< features: a field is a list of so many numbers; 0: it is one number
  std::string missing = {};  ///< labels: this text is none

  /// How many numbers a field becomes.
  [[nodiscard]] Index width() const noexcept {
    if (role == TableRole::ignored || role == TableRole::key) return 0;
    if (list_length > 0) return list_length;
    return role == TableRole::one_hot ? static_cast<Index>(categories.size()) : 1;
  }
};

struct NodeTableFormat {
  char separator = ',';
  std::vector<TableColumn> columns = {};
  TextPosition begin = {};  ///< behind the header

  [[nodiscard]] Index width() const noexcept;  ///< numbers of a row
  [[nodiscard]] std::size_t key() const;       ///< the column of the keys
  /// "key: new_id, labels: mature (False = 0, True = 1), features: days, views, ignored: id, partner"
  [[nodiscard]] std::string describe() const;
};

/// The roles of the columns that the first line names, by SourceOptions::node_columns, or by usual names: the
/// only column called id, node, key, ...; label, class, target, y; train_mask, val_mask, test_mask, split. If
/// the first line has numbers alone and the user gives the key by its number, it is no header, and columns
/// have numbers for names. There are no categories yet. Throws LineError where this does not say the key, and
/// for a column that there is not.
NodeTableFormat table_format(std::string_view first_lines, const SourceOptions& options);

/// Whether a field is empty or says so: NaN, NA, null, None.
bool is_missing_field(std::string_view field) noexcept;

/// Whether a field of a column has no label: see is_missing_field and TableColumn::missing.
bool is_unlabelled(const TableColumn& column, std::string_view field) noexcept;

/// Appends the numbers of a field, `column.width()` of them. true and false are 1 and 0; missing labels and
/// parts of a split are NaN, and a missing category is all 0. Throws LineError for other fields.
void append_numbers(const TableColumn& column, std::string_view field, Index line,
                    std::vector<double>& numbers);

/// A number, or true and false as 1 and 0; nothing: it is another word.
std::optional<double> number_or_flag(std::string_view field) noexcept;

}  // namespace sar::formats
