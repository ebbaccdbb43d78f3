// SPDX-License-Identifier: MIT
#include "column_roles.hpp"

#include "column_names.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace sar::formats {
namespace {

constexpr const char* cure =
    "expected --columns source=NAME,target=NAME (or numbers of columns, from 1), and weight=NAME for weights";

/// "column 2 'to'"
std::string column_text(Index column, std::string_view name) {
  return concat("column ", column + 1, name.empty() ? "" : concat(" ", formats::in_quotes(name)));
}

/// Finds the roles of the columns of one table.
class RoleFinder {
 public:
  RoleFinder(const TableSample& sample, const SourceOptions& options) : sample_(sample), options_(options) {
    columns_.resize(sample.rows.front().size());
    if (sample.has_header) name_columns();
  }

  std::vector<EdgeColumn> find() {
    for (const auto& [role, of] : options_.columns) {
      if (role == "source") source_ = find_given(role, of);
      if (role == "target") target_ = find_given(role, of);
    }
    require<InputError>(source_ < 0 || source_ != target_, "--columns: column ", source_ + 1,
                        " is source and target, expected two columns");
    if (has_names_ && source_ < 0 && target_ < 0) find_named_ends();
    if (source_ < 0 || target_ < 0) find_ends_by_place();
    columns_[source_].role = ColumnRole::source;
    columns_[target_].role = ColumnRole::target;
    if (options_.ignore_data) return std::move(columns_);
    find_given_data();
    find_named_data();
    find_unnamed_data();
    return std::move(columns_);
  }

 private:
  void name_columns();
  void find_named_ends();
  void find_ends_by_place();
  void find_given_data();
  void find_named_data();
  void find_usual_names(bool edge_labels);
  void find_unnamed_data();

  [[nodiscard]] Index num_columns() const { return std::ssize(columns_); }
  [[nodiscard]] bool is_end(Index column) const { return column == source_ || column == target_; }
  [[nodiscard]] Index find_given(const std::string& role, const std::string& of) const;
  void give(Index column, ColumnRole role, std::string field);

  /// Whether `is` holds for the fields of a column in all rows of the sample.
  template <class Is>
  [[nodiscard]] bool all_rows(Index column, const Is& is) const {
    return std::ranges::all_of(sample_.rows, [&](const auto& row) { return is(unquoted(row[column])); });
  }
  [[nodiscard]] bool is_empty(Index column) const {
    return all_rows(column, [](std::string_view field) { return field.empty(); });
  }
  [[nodiscard]] bool has_numbers(Index column) const {
    return all_rows(column, [](std::string_view field) { return field.empty() || to_number(field); });
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
  [[nodiscard]] bool has_a_number(Index column) const {
    return !all_rows(column, [](std::string_view field) { return !to_number(field); });
  }
  [[nodiscard]] bool is_row_number(Index column) const {
    return has_names_ && num_columns() > 2 &&
           (is_row_number_name(columns_[column].name) && (column == 0 || !columns_[column].name.empty()));
  }

  const TableSample& sample_;
  const SourceOptions& options_;
  std::vector<EdgeColumn> columns_;
  bool has_names_ = false;
  Index source_ = -1, target_ = -1;
};

/// A header that is one field shorter than the rows has no name for row names in quotes, as write.table of R
/// makes it. Fields that are empty in all rows need no name.
void RoleFinder::name_columns() {
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

/// A column by its name, or else by its number from 1.
Index RoleFinder::find_given(const std::string& role, const std::string& of) const {
  Index found = -1;
  for (Index c = 0; c < num_columns(); ++c) {
    if (!has_names_ || !same_name(columns_[c].name, of)) continue;
    require<InputError>(found < 0, "--columns: ", role, "=", of, ": columns ", found + 1, " and ", c + 1,
                        " have this name, expected a number from 1 to ", num_columns());
    found = c;
  }
  if (found >= 0) return found;
  const auto number = to_integer(of);
  const std::string names =
      joined(columns_, [](const EdgeColumn& column) { return formats::in_quotes(column.name); });
  require<InputError>(number && *number >= 1 && *number <= num_columns(), "--columns: ", role, "=", of,
                      ": there is no such column, expected ",
                      has_names_ ? concat("one of ", names, " or ") : "", "a number from 1 to ",
                      num_columns());
  return *number - 1;
}

void RoleFinder::find_named_ends() {
  std::vector<std::string_view> names;
  for (const EdgeColumn& column : columns_) names.push_back(column.name);
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

void RoleFinder::find_ends_by_place() {
  for (Index c = 0; c < num_columns(); ++c) {
    if (is_end(c) || is_row_number(c)) continue;
    if (source_ < 0)
      source_ = c;
    else if (target_ < 0)
      target_ = c;
  }
  require<InputError>(source_ >= 0 && target_ >= 0, "there ", num_columns() == 1 ? "is " : "are ",
                      num_columns(), num_columns() == 1 ? " column" : " columns",
                      " in the first edge, expected two nodes (--separator says what stands between them)");
}

void RoleFinder::give(Index column, ColumnRole role, std::string field) {
  columns_[column].role = role;
  columns_[column].field = std::move(field);
}

void RoleFinder::find_given_data() {
  for (const auto& [role, of] : options_.columns)
    if (role != "source" && role != "target") {
      const Index column = find_given(role, of);
      require<InputError>(columns_[column].role == ColumnRole::ignored, "--columns: ", role, "=", of,
                          ": column ", column + 1, " has another role, expected one for each column");
      give(column, data_role(role), role);
    }
  if (!has_names_) return;
  for (const auto& [key, name] : options_.fields)
    if (const ColumnRole role = role_of_key(key); role != ColumnRole::ignored)
      for (Index c = 0; c < num_columns(); ++c)
        if (columns_[c].role == ColumnRole::ignored && same_name(columns_[c].name, name)) give(c, role, name);
}

/// Names are believed where the first rows have numbers, and `split` always.
void RoleFinder::find_named_data() {
  if (!has_names_) return;
  const auto has = [&](ColumnRole role) {
    return std::ranges::find(columns_, role, &EdgeColumn::role) != columns_.end();
  };
  for (const bool edge_labels : {false, true}) {
    if (edge_labels && (!options_.edge_labels || has(ColumnRole::labels))) break;
    find_usual_names(edge_labels);
  }
}

void RoleFinder::find_usual_names(bool edge_labels) {
  const std::vector<EdgeColumn> before = columns_;
  for (Index c = 0; c < num_columns(); ++c) {
    EdgeColumn& column = columns_[c];
    if (column.role != ColumnRole::ignored || column.name.empty()) continue;
    const ColumnRole role = usual_role(column.name, edge_labels);
    if (is_row_number(c)) column.note = "row numbers";
    const bool is_known = std::ranges::find(before, role, &EdgeColumn::role) != before.end();
    if (role == ColumnRole::ignored || (is_known && role != ColumnRole::features)) continue;
    if (is_empty(c) && !(role == ColumnRole::labels && options_.edge_labels)) {
      column.note = "empty";
    } else if (role != ColumnRole::split && role != ColumnRole::weight && !has_numbers(c)) {
      require_no_commas(c);
      column.note = "texts";
    } else {
      const auto other = std::ranges::find(columns_, role, &EdgeColumn::role);
      require<InputError>(other == columns_.end() || role == ColumnRole::features, "columns ",
                          1 + (other - columns_.begin()), " and ", c + 1, " are called ",
                          other == columns_.end() ? "" : formats::in_quotes(other->name), " and ",
                          formats::in_quotes(column.name), ", expected only one of them, or --columns ",
                          field_of(role), "=", column.name);
      give(c, role, field_of(role));
    }
  }
}

void RoleFinder::find_unnamed_data() {
  std::vector<Index> numbers;
  for (Index c = 0; c < num_columns(); ++c) {
    EdgeColumn& column = columns_[c];
    if (column.role != ColumnRole::ignored || !column.name.empty()) continue;
    if (is_empty(c)) {
      column.note = "empty";
    } else if (has_names_ && c < std::min(source_, target_)) {
      column.note = "row numbers";
    } else if (!options_.columns.empty() || (sample_.has_header && !has_names_)) {
      continue;  // the user has said what columns are
    } else if (has_a_number(c)) {
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
  const bool has_weight =
      std::ranges::find(columns_, ColumnRole::weight, &EdgeColumn::role) != columns_.end();
  const bool is_weight = numbers.size() == 1 && !has_weight;
  for (const Index c : numbers)
    give(c, is_weight ? ColumnRole::weight : ColumnRole::features, is_weight ? "weight" : "features");
}

}  // namespace

std::vector<EdgeColumn> column_roles(const TableSample& sample, const SourceOptions& options) {
  return RoleFinder(sample, options).find();
}

std::string describe(const std::vector<EdgeColumn>& columns) {
  const auto of = [&](ColumnRole role) {
    std::vector<std::string> texts;
    for (Index c = 0; c < std::ssize(columns); ++c) {
      if (columns[c].role != role) continue;
      texts.push_back(column_text(c, columns[c].name));
      if (!columns[c].note.empty()) texts.back() += " (" + columns[c].note + ")";
    }
    return joined(texts);
  };
  std::string text = "source: " + of(ColumnRole::source) + ", target: " + of(ColumnRole::target);
  const std::string weight = of(ColumnRole::weight);
  text += ", weight: " + (weight.empty() ? "none" : weight);
  for (const ColumnRole role : {ColumnRole::features, ColumnRole::split, ColumnRole::labels, ColumnRole::type,
                                ColumnRole::train_mask, ColumnRole::val_mask, ColumnRole::test_mask})
    if (const std::string named = of(role); !named.empty()) text += concat(", ", field_of(role), ": ", named);
  if (const std::string ignored = of(ColumnRole::ignored); !ignored.empty()) text += ", ignored: " + ignored;
  return text;
}

}  // namespace sar::formats
