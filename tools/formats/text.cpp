#include "text.hpp"

#include <charconv>
#include <system_error>

namespace sar::formats {
namespace {

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t';
}

template <class T>
std::optional<T> whole_number(std::string_view field) noexcept {
  if (field.size() > 1 && field.front() == '+' && field[1] != '-') field.remove_prefix(1);
  T value{};
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, longest)) shown += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return shown + (text.size() > longest ? "...'" : "'");
}

bool Lines::next() noexcept {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_comment(std::string_view line) noexcept {
  for (const char c : line)
    if (!is_blank(c)) return c == '#' || c == '%';
  return true;
}

Fields::Fields(std::string_view line, char separator) noexcept
    : rest_(trimmed(line)), separator_(separator), more_(!rest_.empty()) {}

bool Fields::next() noexcept {
  if (!more_) return false;
  std::size_t end = 0;
  if (separator_ == blanks) {
    while (end < rest_.size() && !is_blank(rest_[end])) ++end;
    field_ = rest_.substr(0, end);
    while (end < rest_.size() && is_blank(rest_[end])) ++end;
    rest_.remove_prefix(end);
    more_ = !rest_.empty();
    return true;
  }
  end = rest_.find(separator_);
  more_ = end != std::string_view::npos;
  field_ = trimmed(rest_.substr(0, end));
  rest_.remove_prefix(more_ ? end + 1 : rest_.size());
  return true;
}

std::optional<std::int64_t> to_integer(std::string_view field) noexcept {
  return whole_number<std::int64_t>(field);
}
std::optional<double> to_number(std::string_view field) noexcept {
  return whole_number<double>(field);
}

}  // namespace sar::formats
