// SPDX-License-Identifier: MIT
#include "column_roles.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace sar::formats {
namespace {

constexpr const char* cure =
    "expected --columns source=NAME,target=NAME (or numbers of columns, from 1), and weight=NAME for weights";

/// Finds the roles of the columns of one table.
class RoleFinder {
 public:
  RoleFinder(const TableSample& sample, const SourceOptions& options) : sample_(sample), options_(options) {
    columns_.resize(sample.rows.front().size());
    if (!sample.header.empty()) name_columns();
  }

  std::vector<Column> find() {
    for (const auto& [role, of] : options_.columns) {
      if (role == "source") source_ = find_given(role, of)[0];
      if (role == "target") target_ = find_given(role, of)[0];
    }
    require<InputError>(source_ < 0 || source_ != target_, "--columns: column ", source_ + 1,
                        " is source and target, expected two columns");
    if (has_names_ && source_ < 0 && target_ < 0) find_named_ends();
    if (source_ < 0 || target_ < 0) find_ends_by_place();
    columns_[source_].role = ColumnRole::source;
    columns_[target_].role = ColumnRole::target;
    for (const auto& [role, of] : options_.columns)
      require<InputError>(!options_.ignore_data || role == "source" || role == "target", "--columns: ", role,
                          "=", of, " is data, which --ignore-columns leaves alone, expected one of them");
    if (options_.ignore_data) return std::move(columns_);
    find_given_data();
    if (has_names_) find_usual_names(false);
    if (has_names_ && options_.edge_labels && !has(ColumnRole::labels)) find_usual_names(true);
    find_unnamed_data();
    return std::move(columns_);
  }

 private:
  [[nodiscard]] Index num_columns() const { return std::ssize(columns_); }
  [[nodiscard]] bool has(ColumnRole role) const {
    return std::ranges::find(columns_, role, &Column::role) != columns_.end();
  }

  /// Whether `is` holds for the fields of a column in all rows of the sample.
  template <class Is>
  [[nodiscard]] bool all_rows(Index column, const Is& is) const {
    return std::ranges::all_of(sample_.rows, [&](const auto& row) { return is(unquoted(row[column])); });
  }
  [[nodiscard]] bool is_empty(Index column) const {
    return all_rows(column, [](std::string_view field) { return field.empty(); });
  }
  /// Numbers and empty fields; with numbers, also words for missing ones, which are errors when they are
  /// read.
  [[nodiscard]] bool has_numbers(Index column) const {
    bool has_number = false, has_word = false;
    return all_rows(column,
                    [&](std::string_view field) {
                      const bool is_number = to_number(field).has_value();
                      has_number = has_number || is_number;
                      has_word = has_word || (!field.empty() && !is_number);
                      return is_number || is_missing_field(field);
                    }) &&
           (has_number || !has_word);
  }
  /// Throws InputError for data that are no numbers because of their commas.
  void require_no_commas(Index column) const {
    const auto is_number = [](std::string_view field) {
      return field.empty() || to_number(field) || has_number_commas(field);
    };
    if (all_rows(column, is_number) && !has_numbers(column))
      throw InputError(concat(column_text(column, columns_[column].name), " has ",
                              formats::in_quotes(sample_.rows.front()[column]), ", expected ",
                              no_number_commas,
                              "; if it is no data, --columns source=1,target=2 or --ignore-columns"));
  }
  [[nodiscard]] bool is_row_number(Index column) const {
    const std::string& name = columns_[column].name;
    return has_names_ && num_columns() > 2 && is_row_number_name(name) && (column == 0 || !name.empty());
  }

  /// A header that is one field shorter than the rows has no name for row names in quotes, as write.table of
  /// R makes it. Fields that are empty in all rows need no name.
  void name_columns() {
    std::vector<std::string_view> names = sample_.header;
    Index filled = num_columns();
    while (filled > std::ssize(names) && is_empty(filled - 1)) --filled;
    const bool has_row_names =
        std::ssize(names) + 1 == filled && std::ranges::all_of(sample_.rows, [](const auto& row) {
          return row[0].starts_with('"') && to_number(unquoted(row[0]));
        });
    if (has_row_names) names.insert(names.begin(), "");
    const bool both_given = options_.columns.contains("source") && options_.columns.contains("target");
    if (std::ssize(names) < filled && both_given) return;  // which name belongs to which column is not said
    require<InputError>(
        std::ssize(names) == filled || (std::ssize(names) > filled && std::ssize(names) <= num_columns()),
        "the header has ", std::ssize(names), " fields and the first edge has ", filled,
        ", expected as many; if the first column is row numbers, --columns source=2,target=3");
    has_names_ = true;
    for (Index c = 0; c < std::min(num_columns(), Index{std::ssize(names)}); ++c)
      columns_[c].name = unquoted(names[c]);
  }

  /// The column that the user names, or those of features.
  std::vector<Index> find_given(const std::string& role, const std::string& of) const {
    const std::vector<Index> found = find_columns(columns_, of);
    require<InputError>(found.size() < 2 || role == "features", "--columns: ", role, "=", of, ": columns ",
                        found.empty() ? 0 : found[0] + 1, " and ", found.size() < 2 ? 0 : found[1] + 1,
                        " have this name, expected a number from 1 to ", num_columns());
    const std::string names =
        joined(columns_, [](const Column& column) { return formats::in_quotes(column.name); });
    require<InputError>(!found.empty(), "--columns: ", role, "=", of, ": there is no such column, expected ",
                        has_names_ ? concat("one of ", names, " or ") : "", "a number from 1 to ",
                        num_columns());
    return found;
  }

  void find_named_ends() {
    std::vector<std::string_view> names;
    for (const Column& column : columns_) names.push_back(column.name);
    std::tie(source_, target_) = find_end_names(names);
    // One name alone belongs to the first two columns, and stands where its role does.
    if ((source_ < 0) == (target_ < 0)) return;
    const Index known = std::max(source_, target_);
    std::vector<Index> places;
    for (Index c = 0; c < num_columns(); ++c)
      if (!is_row_number(c)) places.push_back(c);
    const std::size_t expected = source_ >= 0 ? 0 : 1;
    require<InputError>(places.size() >= 2 && places[expected] == known, "the header calls ",
                        column_text(known, columns_[known].name), " a ",
                        source_ >= 0 ? "source" : "destination",
                        " and does not say which column is the other end, ", cure);
  }

  void find_ends_by_place() {
    for (Index c = 0; c < num_columns(); ++c) {
      if (c == source_ || c == target_ || is_row_number(c)) continue;
      const ColumnRole role = has_names_ ? usual_role(columns_[c].name, false) : ColumnRole::ignored;
      if (role == ColumnRole::weight || role == ColumnRole::split || is_mask(role)) continue;
      if (source_ < 0)
        source_ = c;
      else if (target_ < 0)
        target_ = c;
    }
    require<InputError>(target_ >= 0 || num_columns() < 3,
                        "the header does not say which columns are the two nodes of an edge, ", cure);
    require<InputError>(source_ >= 0 && target_ >= 0, "there ", num_columns() == 1 ? "is " : "are ",
                        num_columns(), num_columns() == 1 ? " column" : " columns",
                        " in the first edge, expected two nodes (--separator says what stands between them)");
  }

  void give(Index column, ColumnRole role, std::string field) {
    columns_[column].role = role;
    columns_[column].field = std::move(field);
  }

  void find_given_data() {
    for (const auto& [role, of] : options_.columns) {
      if (role == "source" || role == "target") continue;
      for (const Index column : find_given(role, of)) {
        require<InputError>(columns_[column].role == ColumnRole::ignored, "--columns: ", role, "=", of,
                            ": column ", column + 1, " has another role, expected one for each column");
        for (const RoleNames& names : role_names())
          if (!names.key.empty() && role == names.name) give(column, names.role, role);
      }
    }
    if (!has_names_) return;
    for (const auto& [key, name] : options_.fields)
      for (const RoleNames& names : role_names())
        for (Index c = 0; c < num_columns(); ++c)
          if (!names.key.empty() && names.key == key && columns_[c].role == ColumnRole::ignored &&
              same_name(columns_[c].name, name))
            give(c, names.role, name);
  }

  /// Names are believed where the first rows have numbers; those of weights, split and masks always.
  void find_usual_names(bool edge_labels) {
    const std::vector<Column> before = columns_;
    for (Index c = 0; c < num_columns(); ++c) {
      Column& column = columns_[c];
      if (column.role != ColumnRole::ignored || column.name.empty()) continue;
      const ColumnRole role = usual_role(column.name, edge_labels);
      if (is_row_number(c)) column.note = "row numbers";
      const bool is_known = std::ranges::find(before, role, &Column::role) != before.end();
      if (role == ColumnRole::ignored || (is_known && role != ColumnRole::features)) continue;
      if (is_empty(c) && !(role == ColumnRole::labels && options_.edge_labels)) {
        column.note = "empty";
      } else if (role != ColumnRole::split && role != ColumnRole::weight && !is_mask(role) &&
                 !has_numbers(c)) {
        require_no_commas(c);
        column.note = "texts";
      } else {
        const auto other = std::ranges::find(columns_, role, &Column::role);
        require<InputError>(other == columns_.end() || role == ColumnRole::features, "columns ",
                            1 + (other - columns_.begin()), " and ", c + 1, " are called ",
                            other == columns_.end() ? "" : formats::in_quotes(other->name), " and ",
                            formats::in_quotes(column.name), ", expected only one of them, or --columns ",
                            names_of(role).field, "=", column.name);
        give(c, role, names_of(role).field);
      }
    }
  }

  void find_unnamed_data() {
    std::vector<Index> numbers;
    for (Index c = 0; c < num_columns(); ++c) {
      Column& column = columns_[c];
      if (column.role != ColumnRole::ignored || !column.name.empty()) continue;
      if (is_empty(c)) {
        column.note = "empty";
      } else if (has_names_ && c < std::min(source_, target_)) {
        column.note = "row numbers";
      } else if (!options_.columns.empty() || (!sample_.header.empty() && !has_names_)) {
        continue;  // the user has said what columns are
      } else if (!all_rows(c, [](std::string_view field) { return !to_number(field); })) {
        numbers.push_back(c);
      } else if (has_names_) {
        require_no_commas(c);
        column.note = "texts";
      } else {
        throw InputError(concat("column ", c + 1, " is ", formats::in_quotes(sample_.rows.front()[c]),
                                ", expected a number; if it is no data, --columns source=1,target=2 or "
                                "--ignore-columns"));
      }
    }
    const bool is_weight = numbers.size() == 1 && !has(ColumnRole::weight);
    for (const Index c : numbers)
      give(c, is_weight ? ColumnRole::weight : ColumnRole::features, is_weight ? "weight" : "features");
  }

  const TableSample& sample_;
  const SourceOptions& options_;
  std::vector<Column> columns_;
  bool has_names_ = false;
  Index source_ = -1, target_ = -1;
};

/// Gives the columns the roles that the options say, or usual names.
void find_node_roles(const SourceOptions& options, Index line, std::vector<Column>& columns) {
  const auto give = [](Column& column, const RoleNames& names) {
    column.role = names.role;
    column.field = names.field;
  };
  const auto candidates = [&](const auto& is_called) {
    std::vector<Column*> found;
    for (Column& column : columns)
      if (column.role == ColumnRole::ignored && is_called(column.name)) found.push_back(&column);
    return found;
  };
  const auto for_each_given = [&](const auto& take) {
    for (const RoleNames& role : role_names()) {
      const auto [begin, end] = options.node_columns.equal_range(role.name);
      for (auto given = begin; given != end; ++given) take(role, given->second);
    }
  };
  for_each_given([&](const RoleNames& role, const std::string& of) {
    if (of == "*") return;
    const std::vector<Index> found = find_columns(columns, of);
    if (found.empty())
      throw LineError(line, "there is no column ", formats::in_quotes(of), ", expected one of ",
                      joined(columns, &Column::name));
    for (const Index c : found) {
      if (columns[c].role != ColumnRole::ignored && columns[c].role != role.role)
        throw LineError(line, "the column ", formats::in_quotes(columns[c].name),
                        " has two roles in --node-columns, expected one");
      give(columns[c], role);
    }
  });
  if (!options.node_columns.contains("key")) {
    const auto found = candidates(is_key_name);
    if (found.size() != 1)
      throw LineError(line, "the columns are ", joined(columns, &Column::name),
                      ", which does not say the one that has the nodes, expected --node-columns "
                      "key=COLUMN");
    give(*found[0], names_of(ColumnRole::key));
  }
  for (const RoleNames& role : role_names()) {
    if (options.node_columns.contains(role.name)) continue;
    const auto found = candidates([&](const std::string& name) { return is_usual(role, name); });
    if (found.size() > 1)
      throw LineError(line, "the columns ", joined(found, [](const Column* c) { return c->name; }),
                      " may be the ", role.name, ", expected --node-columns ", role.name, "=COLUMN");
    if (found.size() == 1) give(*found[0], role);
  }
  for_each_given([&](const RoleNames& role, const std::string& of) {
    const auto is_feature = [&](const std::string& name) {
      return of == "*" && !name.empty() && !name.starts_with("Unnamed: ");  // row numbers of pandas
    };
    for (Column* column : candidates(is_feature)) give(*column, role);
  });
  if (std::ranges::count(columns, ColumnRole::key, &Column::role) != 1 ||
      std::ranges::count(columns, ColumnRole::labels, &Column::role) > 1)
    throw LineError(line, "several columns are the key or the labels, expected one of each");
  for (Column& column : columns)
    if (column.role == ColumnRole::labels) column.missing = options.missing_label;
}

/// Finds the features whose fields are lists of numbers, by their first field. Throws LineError if that and
/// the fields below may be numbers with commas.
void find_lists(std::span<const FirstLines::Line> lines, TextTable& table) {
  std::vector<std::vector<std::string_view>> rows;
  for (const FirstLines::Line& line : lines) rows.push_back(fields_of(line.text, table.separator));
  for (std::size_t c = 0; c < std::min(table.columns.size(), rows.front().size()); ++c) {
    const std::string_view field = unquoted(rows.front()[c]);
    const auto length = count_in_list(field);
    if (table.columns[c].role != ColumnRole::features || !length) continue;
    const bool may_be_numbers = std::ranges::all_of(rows, [&](const auto& row) {
      return c < row.size() && (number_or_flag(unquoted(row[c])) || has_number_commas(unquoted(row[c])));
    });
    if (has_number_commas(field) && may_be_numbers)
      refuse_field(table.columns[c], field, lines.front().number, no_number_commas);
    table.columns[c].list_length = *length;
  }
}

/// Whether the first line is a row although it has words, where the key is given by its number: keys are
/// integers in all lines, or one of the words stands in the same column of another line.
bool is_row_of_words(const std::vector<FirstLines::Line>& lines, char separator, std::size_t key) {
  const std::vector<std::string_view> first = fields_of(lines.front().text, separator);
  bool recurs = false, are_integers = true;
  for (const FirstLines::Line& line : lines) {
    const std::vector<std::string_view> row = fields_of(line.text, separator);
    are_integers = are_integers && key < row.size() && to_integer(unquoted(row[key]));
    for (std::size_t c = 0; c < std::min(row.size(), first.size()); ++c)
      recurs = recurs || (&line != &lines.front() && row[c] == first[c] &&
                          !number_or_flag(unquoted(row[c])) && !is_missing_field(unquoted(row[c])));
  }
  return recurs || are_integers;
}

}  // namespace

std::vector<Column> column_roles(const TableSample& sample, const SourceOptions& options) {
  return RoleFinder(sample, options).find();
}

TextTable node_table_of(const FirstLines& first, const SourceOptions& options) {
  if (first.lines.empty()) throw LineError(0, "there are no lines, expected a table with a header");
  const std::string_view begin = trimmed(first.lines.front().text);
  if (begin.starts_with('{') || begin.starts_with('['))
    throw LineError(0, "the text is JSON, expected a table; --node-features reads lists of features in JSON");
  TextTable format{.separator = separator_of(first), .begin = first.begin(true)};
  const FirstLines::Line& header = first.lines.front();
  bool is_header = false;
  for (const std::string_view field : fields_of(header.text, format.separator)) {
    format.columns.push_back({.name = std::string(unquoted(field))});
    is_header = is_header || (!number_or_flag(unquoted(field)) && !field.empty());
  }
  const auto given = options.node_columns.find("key");
  const auto key = given == options.node_columns.end() ? std::nullopt : to_integer(given->second);
  is_header =
      first.is_parquet || (is_header && !(key && is_row_of_words(first.lines, format.separator, *key - 1)));
  if (!is_header && !key)
    throw LineError(header.number, "the first line is ", formats::in_quotes(header.text),
                    ", expected a header with the names of the columns, or the numbers "
                    "of the columns in --node-columns, such as key=1");
  if (!is_header) {
    require_no_rows_in_comments(first, format.separator, std::ssize(format.columns));
    format.begin = first.begin(false);
    for (std::size_t c = 0; c < format.columns.size(); ++c) format.columns[c].name = concat(c + 1);
  }
  find_node_roles(options, header.number, format.columns);
  if (const std::size_t row = is_header ? 1 : 0; row < first.lines.size())
    find_lists(std::span(first.lines).subspan(row), format);
  return format;
}

}  // namespace sar::formats
