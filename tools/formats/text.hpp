/// Lines, fields and numbers of a text in memory. Nothing here is collective.
#pragma once

#include <sar/config.hpp>
#include <sar/core/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sar::formats {

/// Says what is wrong with a line; `line` counts from 0 in the given text. The caller, who knows the file and
/// where the text begins in it, makes the whole message.
class LineError : public InputError {
 public:
  LineError(Index line, const std::string& message) : InputError(message), line_(line) {}
  [[nodiscard]] Index line() const noexcept { return line_; }

 private:
  Index line_;
};

/// A field that is not an integer where one was tried: the text may still be right, read in another way.
class NotAnInteger : public LineError {
 public:
  using LineError::LineError;
};

/// A text in quotes, without its end when it is long.
std::string quoted(std::string_view text);

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

/// Without blanks (spaces, tabs) at both ends.
std::string_view trimmed(std::string_view text) noexcept;

/// Whether a line is empty or a comment: its first character is # or %.
bool is_comment(std::string_view line) noexcept;

/// The separator that stands for any number of blanks.
inline constexpr char blanks = ' ';

/// The fields of a line, without blanks around them.
class Fields {
 public:
  Fields(std::string_view line, char separator) noexcept;
  /// Moves on to the next field; false behind the last.
  bool next() noexcept;
  [[nodiscard]] std::string_view field() const noexcept { return field_; }

 private:
  std::string_view rest_;
  std::string_view field_;
  char separator_;
  bool more_;
};

/// The number that the whole field is; nothing when it is none, or too large.
std::optional<std::int64_t> to_integer(std::string_view field) noexcept;
std::optional<double> to_number(std::string_view field) noexcept;  ///< NaN and infinities, too

}  // namespace sar::formats
