/// Exceptions of the library. Every message names the file or tensor concerned, the values found and what was
/// expected.
#pragma once

#include <sar/config.hpp>

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace sar::inline SAR_PRECISION {

/// The class of an error: what ranks tell each other besides its text (see Communicator::agree).
enum class ErrorKind : int { general, shape, input, communication, memory };

/// Base of everything the library throws.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::general)
      : std::runtime_error(message), kind_(kind) {}
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

/// Throws E with the concatenated parts unless `condition` holds.
template <class E = Error, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw E(concat(parts...));
}

}  // namespace sar
