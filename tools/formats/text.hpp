// SPDX-License-Identifier: MIT

/// Lines, fields and numbers of a text in memory. Nothing here is collective.
#pragma once

#include <sar/config.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <forward_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace sar::formats {

/// Says what is wrong with a line; `line` counts from 0 in the given text. The caller, who knows the file and
/// where the text begins in it, makes the whole message.
class LineError : public InputError {
 public:
  template <class... Parts>
  explicit LineError(Index line, const Parts&... message) : InputError(concat(message...)), line_(line) {}
  [[nodiscard]] Index line() const noexcept { return line_; }

 private:
  Index line_;
};

/// Calls read(), and throws InputError with file and line in place of a LineError.
template <class Read>
auto with_line_of(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const LineError& error) {
    throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
  }
}

/// A field that is not an integer where one was tried: the text may still be right, read in another way.
class NotAnInteger : public LineError {
 public:
  using LineError::LineError;
};

/// A text in quotes, without its end when it is long.
std::string in_quotes(std::string_view text);

/// A text in lower case.
std::string lower_case(std::string_view text);

/// The lines of a text without their ends ("\n" or "\r\n"); the last one may have none.
class Lines {
 public:
  explicit Lines(std::string_view text) noexcept : rest_(text) {}
  /// Moves on to the next line; false behind the last.
  bool next() noexcept;
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  [[nodiscard]] Index number() const noexcept { return number_; }  ///< of the line, from 0
  [[nodiscard]] Index count() const noexcept { return number_ + 1; }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }  ///< behind the line

 private:
  std::string_view rest_;
  std::string_view line_;
  Index number_ = -1;
};

/// The separator that stands for any number of blanks.
inline constexpr char blanks = ' ';

/// Without spaces and tabs at both ends. A separator that is a tab is none.
inline std::string_view trimmed(std::string_view text, char separator = blanks) noexcept {
  const auto is_around = [separator](char c) { return c == ' ' || (c == '\t' && separator != '\t'); };
  while (!text.empty() && is_around(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_around(text.back())) text.remove_suffix(1);
  return text;
}

/// Without quotes at both ends.
inline std::string_view unquoted(std::string_view field) noexcept {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return field;
  return field.substr(1, field.size() - 2);
}

/// Texts that are no part of the text which is read.
using KeptTexts = std::forward_list<std::string>;

/// The field without quotes at both ends, and two quotes between them as the one that they mean. Only a field
/// with two is copied, to `kept`.
std::string_view unquoted_text(std::string_view field, KeptTexts& kept);

/// The text behind "weight": in a Python dictionary, up to the next comma or brace; nothing if there is none.
std::optional<std::string_view> weight_in_dictionary(std::string_view line) noexcept;

/// Calls take(word) for each part of a text between any of the separators.
template <class Take>
void for_each_word(std::string_view text, std::string_view separators, const Take& take) {
  for (std::size_t begin = text.find_first_not_of(separators); begin != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    take(text.substr(begin, end - begin));
    begin = text.find_first_not_of(separators, end);
  }
}

/// Whether a name is one of some words with blanks between them.
inline bool is_one_of(std::string_view words, std::string_view name) {
  bool is = false;
  for_each_word(words, " ", [&](std::string_view word) { is = is || word == name; });
  return is;
}

/// Whether a line is empty or a comment: its first character is # or %.
inline bool is_comment(std::string_view line) noexcept {
  for (const char c : line)
    if (c != ' ' && c != '\t') return c == '#' || c == '%';
  return true;
}

struct TextCounts {
  Index lines = 0;
  Index rows = 0;  ///< what a parser makes of lines: one of each data line, say
};

/// Throws LineError for a comment that may be a row of so many fields, at least two: it has as many, and
/// right behind its sign a digit, or with `are_names` a letter.
void require_no_row(std::string_view comment, Index line, char separator, Index num_fields, bool are_names);

inline constexpr auto take_none = [](std::string_view, Index) {};

/// Calls take(line, number) for each line with data: neither empty nor a comment. These are the rows. Calls
/// skip(line, number) for the others.
template <class Take, class Skip = decltype(take_none)>
TextCounts for_each_row(std::string_view text, const Take& take, const Skip& skip = take_none) {
  Lines lines(text);
  Index rows = 0;
  while (lines.next()) {
    if (is_comment(lines.line())) {
      skip(lines.line(), lines.number());
      continue;
    }
    take(lines.line(), lines.number());
    ++rows;
  }
  return {lines.count(), rows};
}

/// The fields of a line, without blanks around them, with their quotes. A field in quotes may have
/// separators.
class Fields {
 public:
  Fields(std::string_view line, char separator) noexcept
      : rest_(trimmed(line, separator)), separator_(separator), more_(!rest_.empty()) {}
  /// Moves on to the next field; false behind the last.
  bool next() noexcept;
  [[nodiscard]] std::string_view field() const noexcept { return field_; }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }  ///< behind the field
  /// Whether one of the fields so far begins with a quote that does not end in the line.
  [[nodiscard]] bool has_open_quote() const noexcept { return open_quote_; }

 private:
  /// Where the end of the next field is looked for: behind its closing quote, if it has one.
  [[nodiscard]] std::size_t behind_quotes() noexcept;

  std::string_view rest_;
  std::string_view field_;
  char separator_;
  bool more_;
  bool open_quote_ = false;
};

/// What is wrong with a line that has an open quote.
inline constexpr const char* open_quote =
    "a quote does not end in this line, expected fields without line breaks, each row in one line";

inline bool Fields::next() noexcept {
  if (!more_) return false;
  const bool plain = rest_.empty() || (rest_.front() != '"' && rest_.front() != ' ');
  std::size_t end = plain ? 0 : behind_quotes();
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  if (separator_ == blanks) {
    while (end < rest_.size() && !is_blank(rest_[end])) ++end;
    field_ = rest_.substr(0, end);
    while (end < rest_.size() && is_blank(rest_[end])) ++end;
    rest_.remove_prefix(end);
    more_ = !rest_.empty();
    return true;
  }
  end = rest_.find(separator_, end);
  more_ = end != std::string_view::npos;
  field_ = trimmed(rest_.substr(0, end), separator_);
  rest_.remove_prefix(more_ ? end + 1 : rest_.size());
  return true;
}

/// Reads a field of 1 to 18 digits, which most integers are, quickly; false for other fields.
inline bool read_digits(std::string_view field, std::int64_t& number) noexcept {
  if (field.empty() || field.size() > 18) return false;
  number = 0;
  for (const char c : field) {
    if (c < '0' || c > '9') return false;
    number = 10 * number + (c - '0');
  }
  return true;
}
/// The number that the whole field is; nothing when it is none, or too large.
std::optional<std::int64_t> to_integer(std::string_view field) noexcept;
/// Also an integer that is written as a floating-point number, "2.0" or "1e+05", if it is less than 2^53.
std::optional<std::int64_t> to_whole_number(std::string_view field) noexcept;
std::optional<double> to_number(std::string_view field) noexcept;  ///< NaN and infinities, too

/// Whether a field is a number only if its commas or blanks mean something: "1,200" and "1 200" with
/// thousands, "0,5" and "1.200,50" with a decimal comma. Some of these may be lists of numbers as well.
bool has_number_commas(std::string_view field);
/// What is expected in their place, for messages.
inline constexpr const char* no_number_commas =
    "numbers as 1200.5, without a decimal comma and separators of thousands, and lists in brackets: [1,200]";

/// Whether a field without quotes is empty or says so: nan, NaN, NA, null, None.
bool is_missing_field(std::string_view field) noexcept;

/// Whether a number is finite as `real`, too.
inline bool is_finite_real(double number) noexcept {
  return std::abs(number) <= static_cast<double>(std::numeric_limits<real>::max());
}
/// What is_finite_real() expects in place of a field, for messages.
inline const char* finite_real(const std::optional<double>& number) noexcept {
  return number && std::isfinite(*number) ? "a number that single precision can hold" : "a finite number";
}

}  // namespace sar::formats
