// SPDX-License-Identifier: MIT

/// Parses JSON text. Not a public header: the JSON library stays an implementation detail.
#pragma once

#include <sar/core/error.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

using Json = nlohmann::json;

/// Parses a whole text in time linear in its length. `what` begins the message of an InputError ("x.json: the
/// file"), `expected` ends it. Rejects names that an object has twice and values nested deeper than
/// `max_depth`, which the JSON library accepts.
Json parse_json(const std::string& text, const std::string& what, const std::string& expected,
                std::size_t max_depth = 64);

}}  // namespace sar
