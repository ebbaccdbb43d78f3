// SPDX-License-Identifier: MIT

/// Exact conversion between numbers and text, independent of the locale. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace sar { inline namespace SAR_PRECISION {

/// Parses the whole text as a number; returns nullopt if it is not one.
template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Returns the shortest text that to_number() converts back to exactly `value`; for an integer, `base` may
/// follow.
template <class Number, class... Base>
std::string exact_text(Number value, Base... base) {
  std::array<char, 65> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, base...).ptr};
}
}}  // namespace sar
