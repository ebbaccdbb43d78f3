// SPDX-License-Identifier: MIT

/// Adds the edge type to error messages.
#pragma once

#include <sar/core/error.hpp>
#include <sar/graph/message/edge_type.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Inserts "edge type 'a:r:b': " at the start of an error message, or after its "rank 2: " if it begins with
/// one.
inline std::string with_type(const EdgeType& type, const std::string& text) {
  std::size_t at = 0;
  if (text.starts_with("rank ")) {
    const std::size_t end = text.find_first_not_of("0123456789", 5);
    if (end != std::string::npos && end > 5 && text.substr(end, 2) == ": ") at = end + 2;
  }
  return concat(text.substr(0, at), "edge type '", type.canonical_name(), "': ", text.substr(at));
}

/// Returns the result of make(), which may be collective. Adds the type to InputError and ShapeError that it
/// throws.
template <class Make>
auto naming(const EdgeType& type, const Make& make) {
  try {
    return make();
  } catch (const InputError& error) {
    throw InputError(with_type(type, error.what()));
  } catch (const ShapeError& error) {
    throw ShapeError(with_type(type, error.what()));
  }
}

}}  // namespace sar
