// SPDX-License-Identifier: MIT

/// Names of an enumeration's values, and numbers as text.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// The names of an enumeration's values, said once, beside the enumeration:
//
//     enum class Reduce { sum, mean };
//     inline constexpr EnumName<Reduce> reduce_names[] = {{Reduce::sum, "sum"}, {Reduce::mean, "mean"}};
//     static_assert(are_in_order(reduce_names));
//     constexpr const char* to_string(Reduce reduce) { return name_in(reduce_names, reduce); }

template <class Enum>
struct EnumName {
  Enum value;
  const char* name;
};

/// Returns whether the rows, EnumName or others with a `value`, are those of 0, 1, ...
template <class Row, std::size_t n>
constexpr bool are_in_order(const Row (&rows)[n]) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    if (static_cast<std::size_t>(rows[i].value) != i) return false;
  return true;
}

/// Returns the name of a value; "" for a number that is none.
template <class Row, std::size_t n>
constexpr const char* name_in(const Row (&names)[n], decltype(Row::value) value) noexcept {
  const auto i = static_cast<std::size_t>(value);
  return i < n ? names[i].name : "";
}

/// Returns names and values of the rows, for options of programs and descriptions.
template <class Row, std::size_t n>
auto named_values(const Row (&rows)[n]) {
  std::vector<std::pair<std::string, decltype(Row::value)>> all;
  for (const Row& row : rows) all.emplace_back(row.name, row.value);
  return all;
}

// Exact conversion between numbers and text, independent of the locale. For implementation files.

/// Parses the whole text as a number; returns nullopt if it is not one. For an integer, `base` may follow.
template <class Number, class... Base>
std::optional<Number> to_number(std::string_view text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses a number that may have a plus sign.
template <class Number>
std::optional<Number> to_signed_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return to_number<Number>(text);
}

/// Returns the shortest text that to_number() converts back to exactly `value`; for an integer, `base` may
/// follow.
template <class Number, class... Base>
std::string exact_text(Number value, Base... base) {
  std::array<char, 65> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, base...).ptr};
}
}}  // namespace sar
