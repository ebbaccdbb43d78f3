// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/file_name.hpp>

#include <charconv>
#include <string_view>

namespace sar { inline namespace SAR_PRECISION {

std::string escaped(const std::string& name) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    if (plain.find(c) != std::string_view::npos && !(c == '.' && text.empty())) {
      text += c;
      continue;
    }
    const auto code = static_cast<unsigned char>(c);
    text += '%';
    text += digits[code >> 4];
    text += digits[code & 15];
  }
  require<InputError>(!text.empty() && text.size() <= 200, "the name '", name.substr(0, 40),
                      "' cannot be that of a file, expected 1 to 200 letters");
  return text;
}

std::string escaped(const std::string& src_type, const std::string& name, const std::string& dst_type) {
  return escaped(src_type) + ":" + escaped(name) + ":" + escaped(dst_type);
}

std::string unescaped(const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    unsigned code = 0;
    const char* begin = name.data() + i + 1;
    if (name[i] == '%' && i + 2 < name.size() &&
        std::from_chars(begin, begin + 2, code, 16).ptr == begin + 2) {
      text += static_cast<char>(code);
      i += 2;
    } else {
      text += name[i];
    }
  }
  return text;
}

}}  // namespace sar
