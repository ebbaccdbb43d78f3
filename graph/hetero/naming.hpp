/// Errors that say which type they are about.
#pragma once

#include <sar/core/error.hpp>
#include <sar/graph/hetero/edge_type.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// What is wrong with an edge type: "edge type 'a:r:b': " in front of the text, behind the "rank 2: " with which
/// that may begin.
inline std::string with_type(const EdgeType& type, const std::string& text) {
  std::size_t at = 0;
  if (text.starts_with("rank ")) {
    const std::size_t end = text.find_first_not_of("0123456789", 5);
    if (end != std::string::npos && end > 5 && text.substr(end, 2) == ": ") at = end + 2;
  }
  return concat(text.substr(0, at), "edge type '", type.canonical_name(), "': ", text.substr(at));
}

/// The result of make(), which may be collective. InputError and ShapeError that it throws name the type.
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

}  // namespace sar
