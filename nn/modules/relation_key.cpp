// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/modules/relation_key.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns a string as Python's repr writes it in a tuple.
std::string quoted(const std::string& text) {
  const bool is_double = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = is_double ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') result += '\\';
    result += c;
  }
  return result + quote;
}

}  // namespace

std::string relation_key(const std::string& name) {
  if (std::ranges::count(name, ':') != 2) return name;
  const std::size_t first = name.find(':'), second = name.rfind(':');
  return concat("(", quoted(name.substr(0, first)), ", ", quoted(name.substr(first + 1, second - first - 1)),
                ", ", quoted(name.substr(second + 1)), ")");
}

std::string with_relation_keys(const std::string& tensor_name) {
  std::string result;
  for (std::size_t begin = 0; begin <= tensor_name.size();) {
    const std::size_t end = std::min(tensor_name.find('.', begin), tensor_name.size());
    if (begin > 0) result += '.';
    result += relation_key(tensor_name.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

}}  // namespace sar
