// SPDX-License-Identifier: MIT
#include "text_table.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sar::formats {
namespace {

/// Calls take(number) for each of the numbers of a list, such as "0.5,1" and "[0.5 1]", as a text.
template <class Take>
void for_each_in_list(std::string_view list, const Take& take) {
  list = trimmed(list);
  if (list.size() > 1 && (list.front() == '[' || list.front() == '(')) list = list.substr(1, list.size() - 2);
  for_each_word(list, ",; \t", take);
}

double label_of(const Column& column, std::string_view field, Index line) {
  if (is_unlabelled(column, field)) return std::numeric_limits<double>::quiet_NaN();
  if (!column.categories.empty())
    return static_cast<double>(std::ranges::lower_bound(column.categories, field) -
                               column.categories.begin());
  const auto value = number_or_flag(field);
  if (!value || !is_finite_real(*value))
    refuse_field(column, field, line, value && std::isfinite(*value) ? finite_real(value) : "a label");
  return *value;
}

void append_list(const Column& column, std::string_view field, Index line, std::vector<double>& numbers) {
  const std::size_t begin = numbers.size();
  for_each_in_list(field, [&](std::string_view text) {
    const auto value = number_or_flag(text);
    if (!value || !is_finite_real(*value))
      refuse_field(column, text, line, concat(finite_real(value), " in the list"));
    numbers.push_back(*value);
  });
  if (std::ssize(numbers) - static_cast<Index>(begin) != column.list_length)
    throw LineError(line, "column ", formats::in_quotes(column.name), " has ", numbers.size() - begin,
                    " numbers, expected ", column.list_length, " as in the first row");
}

}  // namespace

void refuse_field(const Column& column, std::string_view field, Index line, const std::string& expected) {
  throw LineError(line, "column ", formats::in_quotes(column.name), " is ", formats::in_quotes(field),
                  ", expected ", expected);
}

std::optional<Index> count_in_list(std::string_view field) {
  if (number_or_flag(field)) return std::nullopt;
  Index count = 0;
  bool are_numbers = true;
  for_each_in_list(field, [&](std::string_view number) {
    are_numbers = are_numbers && number_or_flag(number).has_value();
    ++count;
  });
  const bool is_list = count > 1 || field.starts_with('[') || field.starts_with('(');
  return is_list && are_numbers ? std::optional(count) : std::nullopt;
}

Index TextTable::width() const noexcept {
  Index width = 0;
  for (const Column& column : columns) width += column.width();
  return width;
}

std::size_t TextTable::place_of(ColumnRole role) const {
  return static_cast<std::size_t>(std::ranges::find(columns, role, &Column::role) - columns.begin());
}

std::string column_text(Index column, std::string_view name) {
  return concat("column ", column + 1, name.empty() ? "" : concat(" ", in_quotes(name)));
}

std::string describe(const std::vector<Column>& columns, bool of_edges) {
  const auto text_of = [&](Index c) {
    const Column& column = columns[c];
    std::string text = of_edges ? column_text(c, column.name) : column.name;
    if (!column.note.empty()) text += concat(" (", column.note, ")");
    if (column.list_length > 0) text += concat(" (", column.list_length, " numbers)");
    if (column.categories.empty()) return text;
    constexpr Index most = 10;
    const Index count = std::ssize(column.categories);
    const std::vector<std::string> shown(column.categories.begin(),
                                         column.categories.begin() + std::min(most, count));
    return text + concat(" (", count, ": ", joined(shown), count > most ? ", ...)" : ")");
  };
  std::string text;
  for (const RoleNames& names : role_names()) {
    std::vector<std::string> texts;
    for (Index c = 0; c < std::ssize(columns); ++c)
      if (columns[c].role == names.role) texts.push_back(text_of(c));
    if (texts.empty() && of_edges && names.role == ColumnRole::weight) texts.emplace_back("none");
    const char* const between = text.empty() ? "" : of_edges ? ", " : "; ";
    if (!texts.empty()) text += concat(between, names.name, ": ", joined(texts));
  }
  return text;
}

std::vector<Index> find_columns(const std::vector<Column>& columns, const std::string& name) {
  std::vector<Index> found, of_list;
  const auto find = [&](const auto& is_called) {
    for (Index c = 0; c < std::ssize(columns); ++c)
      if (is_called(columns[c].name)) found.push_back(c);
  };
  find([&](const std::string& of_column) { return of_column == name; });
  if (found.empty()) find([&](const std::string& of_column) { return same_name(of_column, name); });
  for (Index c = 0; c < std::ssize(columns); ++c)
    if (columns[c].name == concat(name, "[", of_list.size(), "]")) of_list.push_back(c);
  if (found.empty()) found = of_list;
  const auto number = found.empty() ? to_integer(name) : std::nullopt;
  if (number && *number >= 1 && *number <= std::ssize(columns)) found = {*number - 1};
  return found;
}

std::vector<std::pair<std::string, std::vector<Index>>> field_slots(const std::vector<Column>& columns) {
  std::vector<std::pair<std::string, std::vector<Index>>> slots;
  Index slot = 0;
  for (const Column& column : columns) {
    if (column.field.empty()) continue;
    auto found = std::ranges::find(slots, column.field, [](const auto& of) { return of.first; });
    if (found == slots.end()) found = slots.insert(slots.end(), {column.field, {}});
    for (Index i = 0; i < column.width(); ++i) found->second.push_back(slot++);
  }
  return slots;
}

bool is_unlabelled(const Column& column, std::string_view field) noexcept {
  return is_missing_field(field) || (!column.missing.empty() && field == column.missing);
}

std::optional<double> number_or_flag(std::string_view field) noexcept {
  if (const auto number = to_number(field)) return number;
  return same_name(field, "true")    ? std::optional(1.0)
         : same_name(field, "false") ? std::optional(0.0)
                                     : std::nullopt;
}

void append_numbers(const Column& column, std::string_view text, Index line, std::vector<double>& numbers) {
  if (column.field.empty()) return;
  KeptTexts kept;
  const std::string_view field = unquoted_text(text, kept);
  if (column.role == ColumnRole::labels) return numbers.push_back(label_of(column, field, line));
  if (column.list_length > 0) return append_list(column, field, line, numbers);
  if (column.role == ColumnRole::one_hot) {
    const std::size_t begin = numbers.size();
    numbers.resize(begin + column.categories.size(), 0);
    const auto found = std::ranges::lower_bound(column.categories, field);
    if (!is_missing_field(field)) numbers[begin + (found - column.categories.begin())] = 1;
    return;
  }
  if (column.role == ColumnRole::split) {
    const auto part = is_missing_field(field) ? std::numeric_limits<double>::quiet_NaN() : to_part(field);
    if (!part || !(std::isnan(*part) || *part == -1 || *part == 0 || *part == 1 || *part == 2))
      refuse_field(column, field, line, "train, val or test, or 0, 1, 2 or -1");
    return numbers.push_back(*part);
  }
  const auto value = number_or_flag(field);
  const bool is_mask = column.role != ColumnRole::features;
  if (is_mask && (!value || (*value != 0 && *value != 1)))
    refuse_field(column, field, line, "0 or 1, or true or false");
  if (!value || !is_finite_real(*value))
    refuse_field(column, field, line,
                 has_number_commas(field)
                     ? std::string(no_number_commas)
                     : concat(finite_real(value), ", or true or false; --node-columns one-hot=", column.name,
                              " takes names"));
  numbers.push_back(*value);
}

}  // namespace sar::formats
