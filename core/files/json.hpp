// SPDX-License-Identifier: MIT

/// Reads descriptions in JSON, with error messages that locate the value, and writes them. Not a public
/// header: the JSON library stays an implementation detail.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A JSON value, which keeps its document alive, and its place in the file, for messages. The functions throw
/// InputError for another type of value.
class JsonValue {
 public:
  /// Parses a whole text. `what` begins the message of an InputError ("x.json: the file"), `expected` ends
  /// it.
  static JsonValue parse(const std::string& text, const std::string& what, const std::string& expected,
                         const std::string& place);

  [[nodiscard]] JsonValue at(const char* key) const;
  [[nodiscard]] bool has(const char* key) const;
  [[nodiscard]] std::vector<JsonValue> list() const;
  [[nodiscard]] std::string text() const;
  /// Returns an integer from 0 on.
  [[nodiscard]] Index count() const;
  /// Returns an integer of either sign.
  [[nodiscard]] Index integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool is_boolean() const;
  [[nodiscard]] bool flag() const;
  /// Returns the keys of an object, in alphabetical order.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Returns get() of each value of a list, such as all<&JsonValue::text>().
  template <auto get>
  [[nodiscard]] auto all() const {
    std::vector<decltype(std::invoke(get, *this))> values;
    for (const JsonValue& each : list()) values.push_back(std::invoke(get, each));
    return values;
  }
  [[nodiscard]] std::map<std::string, std::string> texts() const;
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const nlohmann::json& json() const { return *json_; }

 private:
  JsonValue(std::shared_ptr<const nlohmann::json> json, std::string place);
  [[nodiscard]] JsonValue part(const nlohmann::json& json, std::string place) const;
  void expect(bool condition, const char* expected) const;

  std::shared_ptr<const nlohmann::json> json_;
  std::string place_;
};

using OrderedJson = nlohmann::ordered_json;  ///< what is written: keys stay in the order of assignment

/// Returns the text of a description file: indented by 1, with a newline at its end.
std::string format_json(const OrderedJson& json);

/// Returns `name` and adds it to `taken`. Throws InputError if it is empty or already taken.
std::string unique_name(const JsonValue& value, const std::string& name, std::set<std::string>& taken);

// Parses JSON text. Not a public header: the JSON library stays an implementation detail.

using Json = nlohmann::json;

/// Parses a whole text in time linear in its length. `what` begins the message of an InputError ("x.json: the
/// file"), `expected` ends it. Rejects names that an object has twice and values nested deeper than
/// `max_depth`, which the JSON library accepts.
Json parse_json(const std::string& text, const std::string& what, const std::string& expected,
                std::size_t max_depth = 64);
}}  // namespace sar
