// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <sar/core/text.hpp>

#include <cctype>
#include <regex>

namespace sar::formats {

std::string in_quotes(std::string_view text) {
  std::size_t shown_bytes = std::min<std::size_t>(text.size(), 40);
  const auto continues = [&](std::size_t i) {  // a character of several bytes in UTF-8
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
  };
  for (int i = 0; i < 3 && continues(shown_bytes); ++i) --shown_bytes;
  std::string shown = "'";
  for (const char c : text.substr(0, shown_bytes)) shown += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return shown + (text.size() > shown_bytes ? "...'" : "'");
}

std::string lower_case(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view unquoted_text(std::string_view field, KeptTexts& kept) {
  const std::string_view text = unquoted(field);
  if (text.size() == field.size() || text.find("\"\"") == text.npos) return text;
  std::string& single = kept.emplace_front();
  for (std::size_t i = 0; i < text.size(); ++i) {
    single += text[i];
    if (text.substr(i).starts_with("\"\"")) ++i;
  }
  return single;
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

std::optional<std::string_view> weight_in_dictionary(std::string_view line) noexcept {
  const std::size_t begin = line.find('{');
  if (begin == line.npos) return std::nullopt;
  for (const std::string_view key : {"'weight':", "\"weight\":"}) {
    const std::size_t at = line.find(key, begin);
    if (at == line.npos) continue;
    std::string_view value = line.substr(at + key.size());
    value = trimmed(value.substr(0, value.find_first_of(",}")));
    const std::size_t open = value.find('(');  // "np.float64(2.5)"
    if (value.starts_with("np.") && open != value.npos && value.ends_with(')'))
      value = value.substr(open + 1, value.size() - open - 2);
    return value;
  }
  return std::nullopt;
}

std::size_t Fields::behind_quotes() noexcept {
  const std::size_t first = rest_.find_first_not_of(' ');
  if (first == std::string_view::npos || rest_[first] != '"') return 0;
  std::size_t close = rest_.find('"', first + 1);
  while (close != std::string_view::npos && close + 1 < rest_.size() && rest_[close + 1] == '"')
    close = rest_.find('"', close + 2);  // two quotes are one in the text
  open_quote_ = open_quote_ || close == std::string_view::npos;
  return close == std::string_view::npos ? 0 : close + 1;
}

void require_no_row(std::string_view comment, Index line, char separator, Index num_fields, bool are_names) {
  const std::string_view text = trimmed(comment);
  const auto behind = static_cast<unsigned char>(text.size() < 2 ? ' ' : text[1]);
  if (!(std::isdigit(behind) != 0 || (are_names && (std::isalpha(behind) != 0 || behind >= 0x80)))) return;
  Fields first(text, separator), all(text, separator);
  first.next();
  Index count = 0;
  while (all.next()) ++count;
  if (count < 2 || count != num_fields) return;
  throw LineError(line, in_quotes(text), " is a comment by its ", text[0],
                  ", and has as many fields as the rows, expected \"", first.field(),
                  "\" in quotes, or a blank behind the ", text[0]);
}

bool has_number_commas(std::string_view field) {
  constexpr std::size_t most_letters = 100;
  if (field.find_first_of(", ") == field.npos || field.size() > most_letters) return false;  // as most are
  static const std::regex forms(
      "[-+]?([0-9]{1,3}(,[0-9]{3})+([.][0-9]+)?"       // 1,200.5
      "|[0-9]{1,3}( [0-9]{3})+(,[0-9]+)?"              // 1 200,5
      "|[0-9]{1,3}([.][0-9]{3})+,[0-9]+"               // 1.200,5
      "|([0-9]+,[0-9]*|,[0-9]+)([eE][-+]?[0-9]+)?)");  // 0,5
  return std::regex_match(field.begin(), field.end(), forms);
}

bool is_missing_field(std::string_view field) noexcept {
  if (field.size() > 4) return false;  // as most are
  for (const char* text : {"", "nan", "NaN", "NA", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL", "None"})
    if (field == text) return true;
  return false;
}

std::optional<std::int64_t> to_integer(std::string_view field) noexcept {
  return to_signed_number<std::int64_t>(field);
}
std::optional<std::int64_t> to_whole_number(std::string_view field) noexcept {
  if (const auto integer = to_integer(field)) return integer;
  const auto number = to_number(field);
  if (!number || !(std::abs(*number) < 0x1p53) || *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}
std::optional<double> to_number(std::string_view field) noexcept {
  return to_signed_number<double>(field);
}

}  // namespace sar::formats
