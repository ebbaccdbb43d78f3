// SPDX-License-Identifier: MIT

/// The exceptions of the library. Every message names the file or tensor, the values found and the values
/// expected. Every message is printable, whatever bytes the names in a file contain.
///
/// Room core: What everything else needs: exceptions, numbers and their text, random draws.
#pragma once

#include <sar/config.hpp>

#include <functional>
#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// The class of an exception. Ranks exchange it together with the text (see Communicator::agree).
enum class ErrorKind : int { general, shape, input, communication, memory };

/// Returns the text with every control character (except newline and tab) and every byte that is not part of
/// a valid UTF-8 character replaced by \\xNN. A name read from a file therefore cannot send control sequences
/// to a terminal. Idempotent: printable(printable(text)) == printable(text).
std::string printable(std::string_view text);

/// The base class of all exceptions of the library. what() is printable().
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::general)
      : std::runtime_error(printable(message)), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// Shapes or lengths of operands do not match.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& message) : Error(message, ErrorKind::shape) {}
};

/// A file, dataset, graph or option is invalid.
class InputError : public Error {
 public:
  explicit InputError(const std::string& message) : Error(message, ErrorKind::input) {}
};

/// MPI reported an error, or the ranks made different collective calls.
class CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message) : Error(message, ErrorKind::communication) {}
};

/// A block of memory could not be allocated.
class MemoryError : public Error {
 public:
  explicit MemoryError(const std::string& message) : Error(message, ErrorKind::memory) {}
};

/// Throws the exception class that corresponds to `kind`.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& message);

/// A reference to a value that operator<< writes, valid as long as the value: for the arguments of a call.
/// Templates that take values of many types pass TextParts on, so that streams are compiled once for a type
/// and not once for a combination of types.
class TextPart {
 public:
  template <class Value>
  TextPart(const Value& value)  // NOLINT: implicit
      : value_(&value),
        write_([](std::ostream& out, const void* of) { out << *static_cast<const Value*>(of); }) {}
  TextPart(const char* text)  // NOLINT: implicit
      : value_(text),
        write_([](std::ostream& out, const void* of) { out << static_cast<const char*>(of); }) {}
  void write(std::ostream& out) const { write_(out, value_); }

 private:
  const void* value_;
  void (*write_)(std::ostream&, const void*);
};

/// Returns the concatenation of the parts.
[[gnu::cold]] std::string concat_parts(std::initializer_list<TextPart> parts);

/// Returns the concatenation of all parts, each written with operator<< in the classic locale (the host
/// program's locale does not change how numbers look). Parts are values, not functions such as std::hex.
template <class... Parts>
std::string concat(const Parts&... parts) {
  return concat_parts({TextPart(parts)...});
}

/// Returns the elements of a list, or `text` of each (a member or a function), with `between` between them.
template <class List, class Text = std::identity>
std::string joined(const List& list, const Text& text = {}, const char* between = ", ") {
  std::string all;
  const char* before = "";
  for (const auto& each : list) all += concat(std::exchange(before, between), std::invoke(text, each));
  return all;
}

/// The valid indices of a list of `size` elements for error messages: "0 to 9", or "none" if empty. It
/// becomes text only where it is written, so that a check of each row costs none.
struct IndexRange {
  Index size;
  friend std::ostream& operator<<(std::ostream& out, IndexRange range);
};
inline IndexRange index_range(Index size) {
  return {size};
}

/// Throws E with the concatenation of the parts.
template <class E>
[[noreturn, gnu::cold, gnu::noinline]] void throw_with_parts(std::initializer_list<TextPart> parts) {
  throw E(concat_parts(parts));
}

/// Throws E with the concatenated parts if `condition` is false.
template <class E = Error, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw_with_parts<E>({TextPart(parts)...});
}

}}  // namespace sar
