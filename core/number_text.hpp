/// Numbers as text that gives the same number when it is read. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace sar::inline SAR_PRECISION {

/// The number that the whole text is; nothing when it is none.
template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// All digits.
template <class Number>
std::string exact_text(Number value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace sar
