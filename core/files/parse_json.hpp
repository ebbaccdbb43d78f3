/// Parses JSON text. Not a public header: the JSON library stays an implementation detail.
#pragma once

#include <sar/core/error.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Parses a whole text. `what` begins the message of an InputError ("x.json: the file"), `expected` ends it.
/// `watch` is the callback of Json::parse.
template <class Json, class Watch = std::nullptr_t>
Json parse_json(const std::string& text, const std::string& what, const std::string& expected,
                Watch watch = nullptr) {
  try {
    return Json::parse(text, watch);
  } catch (const typename Json::parse_error& error) {
    throw InputError(concat(what, " is no JSON at its byte ", error.byte, ", expected ", expected));
  } catch (const typename Json::out_of_range&) {
    throw InputError(concat(what, " has a number that is too large, expected ", expected));
  }
}

}}  // namespace sar
