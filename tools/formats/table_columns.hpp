// SPDX-License-Identifier: MIT

/// What the columns of a table of nodes mean, and how a field becomes a number; files of the ids of nodes.
#pragma once

#include "column_names.hpp"
#include "line_blocks.hpp"
#include "source_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/threads/parallel.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

struct TableColumn {
  std::string name;
  ColumnRole role = ColumnRole::ignored;
  /// The values of one-hot columns, and of labels that are names: category i is the number i. Sorted.
  std::vector<std::string> categories = {};
  Index list_length = 0;     ///< features: a field is a list of so many numbers; 0: it is one number
  std::string missing = {};  ///< labels: this text is none

  /// How many numbers a field becomes.
  [[nodiscard]] Index width() const noexcept {
    if (role == ColumnRole::ignored || role == ColumnRole::key) return 0;
    if (list_length > 0) return list_length;
    return role == ColumnRole::one_hot ? static_cast<Index>(categories.size()) : 1;
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

/// Reads a text with an id a line, or a table: its header calls a column id, node, key, name or x_id, or it
/// is a .csv or .tsv file without a header and has the ids in the first column. Row i, which is neither a
/// comment nor empty, has the id of node i. `take` gets the ids of consecutive rows of this rank and the
/// number of the first; every rank calls it the same number of times. Returns the number of rows. Collective;
/// throws InputError, the same on every rank.
Index read_node_keys(const Communicator& comm, const std::string& path, const SourceOptions& options,
                     FunctionRef<void(std::span<const std::string_view> ids, Index first)> take);

}  // namespace sar::formats
