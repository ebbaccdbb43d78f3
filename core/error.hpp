/// Exceptions of the library. Every message names the file or tensor concerned, the values found and what was
/// expected, and can be printed whatever the names in a file are.
#pragma once

#include <sar/config.hpp>

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sar::inline SAR_PRECISION {

/// The class of an error: what ranks tell each other besides its text (see Communicator::agree).
enum class ErrorKind : int { general, shape, input, communication, memory };

/// The text with \\xNN in the place of each byte that is neither part of a UTF-8 character nor the end of a
/// line, and of control characters: a name from a file cannot change the screen that it is printed on.
/// printable(printable(text)) is printable(text).
std::string printable(std::string_view text);

/// Base of everything the library throws. The message is printable().
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::general)
      : std::runtime_error(printable(message)), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// Operands whose shapes or lengths do not fit together.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& message) : Error(message, ErrorKind::shape) {}
};

/// A file, dataset, graph or option that cannot be used as given.
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(message, ErrorKind::input) {}
};

/// MPI reported a failure, or a collective call was made inconsistently.
class CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message) : Error(message, ErrorKind::communication) {}
};

/// No memory for a block of the given size.
class MemoryError : public Error {
 public:
  explicit MemoryError(const std::string& message) : Error(message, ErrorKind::memory) {}
};

/// Throws the exception class that belongs to `kind`.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& message);

/// The parts written one after the other, as by operator<<; numbers as in C++, whatever the host's locale is.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // or a text without memory would be a shorter one
  text.imbue(std::locale::classic());
  (text << ... << parts);
  return text.str();
}

/// What an index below `size` can be, for messages: "0 to 9"; "none" without any.
std::string index_range(Index size);

/// Throws E with the concatenated parts unless `condition` holds.
template <class E = Error, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw E(concat(parts...));
}

}  // namespace sar
