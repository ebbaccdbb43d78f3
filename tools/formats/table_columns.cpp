// SPDX-License-Identifier: MIT
#include "table_columns.hpp"

#include "column_names.hpp"
#include "first_lines.hpp"
#include "formats/packed/parquet_table.hpp"
#include "line_blocks.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

struct RoleOfTable {
  const char* name;
  ColumnRole role;
  std::vector<const char*> usual;  ///< names of columns that have it where the user names none
};
const std::vector<RoleOfTable>& table_roles() {
  static const std::vector<RoleOfTable> roles{
      {"key", ColumnRole::key, {}},
      {"labels", ColumnRole::labels, {"label", "labels", "class", "target", "y"}},
      {"features", ColumnRole::features, {}},
      {"one-hot", ColumnRole::one_hot, {}},
      {"train_mask", ColumnRole::train_mask, {"train_mask"}},
      {"val_mask", ColumnRole::val_mask, {"val_mask", "valid_mask"}},
      {"test_mask", ColumnRole::test_mask, {"test_mask"}},
      {"split", ColumnRole::split, {"split"}}};
  return roles;
}

std::string list_of_names(const std::vector<TableColumn>& columns) {
  return joined(columns, &TableColumn::name);
}

/// The column of a name or of a number from 1, or the columns x[0], x[1], ... of a list x.
std::vector<std::size_t> find_table_columns(const std::vector<TableColumn>& columns, const std::string& name,
                                            Index line) {
  const auto named = std::ranges::find(columns, name, &TableColumn::name);
  if (named != columns.end()) return {static_cast<std::size_t>(named - columns.begin())};
  std::vector<std::size_t> of_list;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c].name == concat(name, "[", of_list.size(), "]")) of_list.push_back(c);
  if (!of_list.empty()) return of_list;
  const auto number = to_integer(name);
  if (!number || *number < 1 || *number > std::ssize(columns))
    throw LineError(line, concat("there is no column ", formats::in_quotes(name), ", expected one of ",
                                 list_of_names(columns)));
  return {static_cast<std::size_t>(*number - 1)};
}

void set_role(TableColumn& column, ColumnRole role, Index line) {
  if (column.role != ColumnRole::ignored && column.role != role)
    throw LineError(line, concat("the column ", formats::in_quotes(column.name),
                                 " has two roles in --node-columns, expected one"));
  column.role = role;
}

/// The roles that the user names; "*" is all columns without a role.
void set_named_roles(const SourceOptions& options, Index line, std::vector<TableColumn>& columns) {
  for (const auto& [name, role, usual] : table_roles()) {
    const auto [begin, end] = options.node_columns.equal_range(name);
    for (auto given = begin; given != end; ++given)
      if (given->second != "*")
        for (const std::size_t column : find_table_columns(columns, given->second, line))
          set_role(columns[column], role, line);
  }
}
void set_usual_roles(const SourceOptions& options, Index line, std::vector<TableColumn>& columns) {
  for (const auto& [name, role, usual] : table_roles()) {
    if (options.node_columns.contains(name)) continue;
    std::vector<TableColumn*> found;
    for (TableColumn& column : columns)
      if (column.role == ColumnRole::ignored &&
          std::ranges::any_of(usual, [&](const char* known) { return same_name(column.name, known); }))
        found.push_back(&column);
    if (found.size() > 1)
      throw LineError(line,
                      concat("the columns ", joined(found, [](const TableColumn* c) { return c->name; }),
                             " may be the ", name, ", expected --node-columns ", name, "=COLUMN"));
    if (found.size() == 1) found[0]->role = role;
  }
}
void set_other_roles(const SourceOptions& options, std::vector<TableColumn>& columns) {
  for (const auto& [name, role, usual] : table_roles()) {
    const auto [begin, end] = options.node_columns.equal_range(name);
    if (std::none_of(begin, end, [](const auto& given) { return given.second == "*"; })) continue;
    for (TableColumn& column : columns)
      if (column.role == ColumnRole::ignored) column.role = role;
  }
}

/// The only column that is called as a key.
void set_usual_key(Index line, std::vector<TableColumn>& columns) {
  std::vector<TableColumn*> found;
  for (TableColumn& column : columns)
    if (column.role == ColumnRole::ignored && is_key_name(column.name)) found.push_back(&column);
  if (found.size() != 1)
    throw LineError(line,
                    concat("the columns are ", list_of_names(columns), ", which does not say the one that ",
                           "has the nodes, expected --node-columns key=COLUMN"));
  found[0]->role = ColumnRole::key;
}

[[noreturn]] void refuse_field(const TableColumn& column, std::string_view field, Index line,
                               const std::string& expected) {
  throw LineError(line, concat("column ", formats::in_quotes(column.name), " is ", formats::in_quotes(field),
                               ", expected ", expected));
}

/// Calls take(number) for each of the numbers of a list, such as "0.5,1" and "[0.5 1]", as a text.
template <class Take>
void for_each_in_list(std::string_view list, const Take& take) {
  constexpr std::string_view separators = ",; \t";
  list = trimmed(list);
  if (list.size() > 1 && (list.front() == '[' || list.front() == '(')) list = list.substr(1, list.size() - 2);
  for (std::size_t begin = list.find_first_not_of(separators); begin != list.npos;) {
    const std::size_t end = std::min(list.find_first_of(separators, begin), list.size());
    take(list.substr(begin, end - begin));
    begin = list.find_first_not_of(separators, end);
  }
}

/// Throws LineError for a list in the first row if it and the lists below may be numbers with commas.
void require_list(const TableColumn& column, std::size_t c, char separator,
                  std::span<const FirstLines::Line> rows) {
  for (const FirstLines::Line& row : rows) {
    const auto fields = fields_of(row.text, separator);
    if (c >= fields.size()) return;
    const std::string_view field = unquoted(fields[c]);
    if (!number_or_flag(field) && !has_number_commas(field)) return;
  }
  const auto fields = fields_of(rows.front().text, separator);
  refuse_field(column, unquoted(fields[c]), rows.front().number, no_number_commas);
}

/// The features whose fields are lists of numbers, by their first field.
void find_lists(std::span<const FirstLines::Line> rows, char separator, std::vector<TableColumn>& columns) {
  const auto fields = fields_of(rows.front().text, separator);
  for (std::size_t c = 0; c < std::min(columns.size(), fields.size()); ++c) {
    const std::string_view field = unquoted(fields[c]);
    if (columns[c].role != ColumnRole::features || number_or_flag(field)) continue;
    Index count = 0;
    bool are_numbers = true;
    for_each_in_list(field, [&](std::string_view number) {
      are_numbers = are_numbers && number_or_flag(number).has_value();
      ++count;
    });
    const bool is_list = count > 1 || field.starts_with('[') || field.starts_with('(');
    if (!is_list || !are_numbers) continue;
    if (has_number_commas(field)) require_list(columns[c], c, separator, rows);
    columns[c].list_length = count;
  }
}

double label_of(const TableColumn& column, std::string_view field, Index line) {
  if (is_unlabelled(column, field)) return std::numeric_limits<double>::quiet_NaN();
  if (!column.categories.empty())
    return static_cast<double>(std::ranges::lower_bound(column.categories, field) -
                               column.categories.begin());
  const auto value = number_or_flag(field);
  if (!value || !is_finite_real(*value))
    refuse_field(column, field, line, value && std::isfinite(*value) ? finite_real(value) : "a label");
  return *value;
}

void append_list(const TableColumn& column, std::string_view field, Index line,
                 std::vector<double>& numbers) {
  const std::size_t begin = numbers.size();
  for_each_in_list(field, [&](std::string_view text) {
    const auto value = number_or_flag(text);
    if (!value || !is_finite_real(*value))
      refuse_field(column, text, line, concat(finite_real(value), " in the list"));
    numbers.push_back(*value);
  });
  if (std::ssize(numbers) - static_cast<Index>(begin) != column.list_length)
    throw LineError(line, concat("column ", formats::in_quotes(column.name), " has ", numbers.size() - begin,
                                 " numbers, expected ", column.list_length, " as in the first row"));
}

}  // namespace

Index NodeTableFormat::width() const noexcept {
  Index width = 0;
  for (const TableColumn& column : columns) width += column.width();
  return width;
}

std::string NodeTableFormat::describe() const {
  std::string text;
  const auto add = [&](const char* name, ColumnRole role) {
    std::string list;
    for (const TableColumn& column : columns) {
      if (column.role != role) continue;
      list += (list.empty() ? " " : ", ") + column.name;
      if (column.list_length > 0) list += concat(" (", column.list_length, " numbers)");
      if (column.categories.empty()) continue;
      constexpr std::size_t most = 10;
      std::vector<std::string> shown(
          column.categories.begin(),
          column.categories.begin() + static_cast<std::ptrdiff_t>(std::min(most, column.categories.size())));
      list += concat(" (", column.categories.size(), ": ", joined(shown),
                     column.categories.size() > most ? ", ...)" : ")");
    }
    if (!list.empty()) text += concat(text.empty() ? "" : "; ", name, ":", list);
  };
  for (const auto& [name, role, usual] : table_roles()) add(name, role);
  add("ignored", ColumnRole::ignored);
  return text;
}

NodeTableFormat table_format(std::string_view text, const SourceOptions& options) {
  const FirstLines first = first_lines(text);
  if (first.lines.empty()) throw LineError(0, "there are no lines, expected a table with a header");
  const std::string_view begin = trimmed(first.lines.front().text);
  if (begin.starts_with('{') || begin.starts_with('['))
    throw LineError(0, "the text is JSON, expected a table; --node-features reads lists of features in JSON");
  const bool has_commas = is_parquet(options.node_table);
  NodeTableFormat format{.separator = has_commas ? ',' : separator_of(first), .begin = first.begin(true)};
  const FirstLines::Line& header = first.lines.front();
  bool is_header = false;
  for (const std::string_view field : fields_of(header.text, format.separator)) {
    format.columns.push_back({.name = std::string(unquoted(field))});
    is_header = is_header || (!number_or_flag(unquoted(field)) && !field.empty());
  }
  const auto key = options.node_columns.find("key");
  if (!is_header && (key == options.node_columns.end() || !to_integer(key->second)))
    throw LineError(header.number, concat("the first line is ", formats::in_quotes(header.text),
                                          ", expected a header with the names of the columns, or the numbers "
                                          "of the columns in --node-columns, such as key=1"));
  if (!is_header) {
    format.begin = first.begin(false);
    for (std::size_t c = 0; c < format.columns.size(); ++c) format.columns[c].name = concat(c + 1);
  }
  set_named_roles(options, header.number, format.columns);
  if (!options.node_columns.contains("key")) set_usual_key(header.number, format.columns);
  set_usual_roles(options, header.number, format.columns);
  set_other_roles(options, format.columns);
  if (std::ranges::count(format.columns, ColumnRole::key, &TableColumn::role) != 1 ||
      std::ranges::count(format.columns, ColumnRole::labels, &TableColumn::role) > 1)
    throw LineError(header.number, "several columns are the key or the labels, expected one of each");
  for (TableColumn& column : format.columns)
    if (column.role == ColumnRole::labels) column.missing = options.missing_label;
  if (const std::size_t row = is_header ? 1 : 0; row < first.lines.size())
    find_lists(std::span(first.lines).subspan(row), format.separator, format.columns);
  return format;
}

std::size_t NodeTableFormat::key() const {
  return static_cast<std::size_t>(std::ranges::find(columns, ColumnRole::key, &TableColumn::role) -
                                  columns.begin());
}

bool is_unlabelled(const TableColumn& column, std::string_view field) noexcept {
  return is_missing_field(field) || (!column.missing.empty() && field == column.missing);
}

bool is_missing_field(std::string_view field) noexcept {
  for (const char* text : {"", "nan", "NaN", "NA", "null", "None"})
    if (field == text) return true;
  return false;
}

std::optional<double> number_or_flag(std::string_view field) noexcept {
  if (same_name(field, "true")) return 1;
  if (same_name(field, "false")) return 0;
  return to_number(field);
}

void append_numbers(const TableColumn& column, std::string_view text, Index line,
                    std::vector<double>& numbers) {
  const std::string_view field = unquoted(text);
  switch (column.role) {
    case ColumnRole::ignored:
    case ColumnRole::key:
    case ColumnRole::source:
    case ColumnRole::target:
    case ColumnRole::weight:
    case ColumnRole::type:
      return;
    case ColumnRole::labels:
      return numbers.push_back(label_of(column, field, line));
    case ColumnRole::one_hot: {
      const std::size_t begin = numbers.size();
      numbers.resize(begin + column.categories.size(), 0);
      const auto found = std::ranges::lower_bound(column.categories, field);
      if (!is_missing_field(field)) numbers[begin + (found - column.categories.begin())] = 1;
      return;
    }
    case ColumnRole::split: {
      const auto part = is_missing_field(field) ? std::numeric_limits<double>::quiet_NaN() : to_part(field);
      if (!part) refuse_field(column, field, line, "train, val or test");
      return numbers.push_back(*part);
    }
    case ColumnRole::features: {
      if (column.list_length > 0) return append_list(column, field, line, numbers);
      const auto value = number_or_flag(field);
      if (!value || !is_finite_real(*value))
        refuse_field(column, field, line,
                     has_number_commas(field)
                         ? std::string(no_number_commas)
                         : concat(finite_real(value), ", or true or false; --node-columns one-hot=",
                                  column.name, " takes names"));
      return numbers.push_back(*value);
    }
    case ColumnRole::train_mask:
    case ColumnRole::val_mask:
    case ColumnRole::test_mask: {
      const auto value = number_or_flag(field);
      if (!value || (*value != 0 && *value != 1))
        refuse_field(column, field, line, "0 or 1, or true or false");
      return numbers.push_back(*value);
    }
  }
}

namespace {

struct KeyFormat {
  bool is_table = false;  ///< else a line is an id
  char separator = blanks;
  Index column = 0;
  TextPosition begin;
};

/// Of a table, the first column that is called as a key.
KeyFormat guess_key_format(const std::string& path, std::string_view text, const SourceOptions& options) {
  if (path == options.node_table) {
    const NodeTableFormat table = table_format(text, options);
    return {true, table.separator, static_cast<Index>(table.key()), table.begin};
  }
  KeyFormat format;
  const FirstLines first = first_lines(text);
  if (first.lines.empty()) return format;
  format.separator = separator_of(first);
  format.begin = first.begin(false);
  for (const char* end : {".csv", ".tsv", ".csv.gz", ".tsv.gz"})
    format.is_table = format.is_table || path.ends_with(end);
  if (is_parquet(path)) format = {true, ',', 0, first.begin(true)};
  const auto fields = fields_of(first.lines.front().text, format.separator);
  for (std::size_t c = 0; c < fields.size(); ++c)
    if (is_key_name(unquoted(fields[c])))
      return {true, format.separator, static_cast<Index>(c), first.begin(true)};
  return format;
}

/// The id of a line; empty: there is none.
std::string_view id_of(std::string_view line, const KeyFormat& format) {
  if (!format.is_table) return unquoted(trimmed(line));
  Fields fields(line, format.separator);
  for (Index column = 0; fields.next(); ++column)
    if (column == format.column) return unquoted(fields.field());
  return {};
}

}  // namespace

Index read_node_keys(const Communicator& comm, const std::string& path, const SourceOptions& options,
                     FunctionRef<void(std::span<const std::string_view> ids, Index first)> take) {
  const KeyFormat format =
      guess_from_first_lines(comm, path, "a text with the id of a node in each line",
                             [&](std::string_view text) { return guess_key_format(path, text, options); });
  std::vector<std::string_view> ids;
  const auto parse = [&](std::string_view text) {
    ids.clear();
    return for_each_row(text, [&](std::string_view line, Index number) {
      const std::string_view id = id_of(line, format);
      if (id.empty())
        throw LineError(number, concat("there is no id in column ", format.column + 1, " of ",
                                       in_quotes(line), ", expected one"));
      ids.push_back(id);
    });
  };
  return read_lines(comm, path, format.begin, options.block_bytes, parse,
                    [&](const BlockPlace& at) { take(ids, at.first_row); })
      .rows;
}

}  // namespace sar::formats
