// SPDX-License-Identifier: MIT

// printable() reads the text once and looks at no more than four bytes at a time. The ranges of second
// bytes in printable_bytes() are those of well-formed UTF-8 (Unicode Standard, table 3-7), without the
// control characters U+0080 to U+009F.
#include <sar/core/error.hpp>

#include <cstddef>
#include <locale>
#include <sstream>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the length in bytes of the printable UTF-8 character at the front of `text`, or 0 if there is
/// none.
std::size_t printable_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xbf) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return (first >= 0x20 && first != 0x7f) || first == '\n' || first == '\t' ? 1 : 0;
  // the ranges exclude overlong encodings, surrogates and control characters
  if (first == 0xc2) return continues(1, 0xa0) ? 2 : 0;
  if (first >= 0xc3 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return continues(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && continues(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return continues(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && continues(2) &&
                   continues(3)
               ? 4
               : 0;
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    const std::size_t bytes = printable_bytes(text);
    if (bytes > 0) {
      shown += text.substr(0, bytes);
    } else {
      const auto byte = static_cast<unsigned char>(text[0]);
      shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return shown;
}

std::string concat_parts(std::initializer_list<TextPart> parts) {
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // throw instead of returning a truncated text when memory is exhausted
  text.imbue(std::locale::classic());
  for (const TextPart& part : parts) part.write(text);
  return text.str();
}

std::ostream& operator<<(std::ostream& out, IndexRange range) {
  return range.size > 0 ? out << "0 to " << range.size - 1 : out << "none";
}

void throw_error(ErrorKind kind, const std::string& message) {
  switch (kind) {
    case ErrorKind::shape:
      throw ShapeError(message);
    case ErrorKind::input:
      throw InputError(message);
    case ErrorKind::communication:
      throw CommunicationError(message);
    case ErrorKind::memory:
      throw MemoryError(message);
    case ErrorKind::general:
      break;
  }
  throw Error(message, kind);
}

}}  // namespace sar
