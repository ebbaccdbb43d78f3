/// Reads descriptions in JSON, with error messages that locate the value. Not a public header: the JSON
/// library stays an implementation detail.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/files/parse_json.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

using OrderedJson = nlohmann::ordered_json;

/// A JSON value and its place in the file, for messages. The functions throw InputError for another type of
/// value.
class JsonValue {
 public:
  JsonValue(const OrderedJson& json, std::string place) : json_(json), place_(std::move(place)) {}

  [[nodiscard]] JsonValue at(const char* key) const {
    require<InputError>(json_.is_object(), place_, " is ", json_.type_name(), ", expected an object");
    const auto found = json_.find(key);
    require<InputError>(found != json_.end(), place_, " has no ", key, ", expected one");
    return {*found, concat(place_, ".", key)};
  }
  [[nodiscard]] bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  [[nodiscard]] std::vector<JsonValue> list() const {
    require<InputError>(json_.is_array(), place_, " is ", json_.type_name(), ", expected a list");
    std::vector<JsonValue> values;
    for (const OrderedJson& element : json_)
      values.emplace_back(element, concat(place_, "[", values.size(), "]"));
    return values;
  }
  [[nodiscard]] std::string text() const {
    require<InputError>(json_.is_string(), place_, " is ", json_.type_name(), ", expected a text");
    return json_.get<std::string>();
  }
  [[nodiscard]] Index count() const {
    require<InputError>(is_index() && json_.get<Index>() >= 0, place_, " is ", shortened(json_),
                        ", expected a whole number from 0 on");
    return json_.get<Index>();
  }
  /// Returns an integer of either sign.
  [[nodiscard]] Index integer() const {
    require<InputError>(is_index(), place_, " is ", shortened(json_), ", expected a whole number");
    return json_.get<Index>();
  }
  [[nodiscard]] double number() const {
    require<InputError>(json_.is_number(), place_, " is ", shortened(json_), ", expected a number");
    return json_.get<double>();
  }
  [[nodiscard]] bool is_boolean() const { return json_.is_boolean(); }
  [[nodiscard]] bool flag() const {
    require<InputError>(json_.is_boolean(), place_, " is ", shortened(json_), ", expected true or false");
    return json_.get<bool>();
  }
  /// Returns the keys of an object, in the order of the file.
  [[nodiscard]] std::vector<std::string> keys() const {
    require<InputError>(json_.is_object(), place_, " is ", json_.type_name(), ", expected an object");
    std::vector<std::string> names;
    for (const auto& element : json_.items()) names.push_back(element.key());
    return names;
  }
  [[nodiscard]] std::vector<Index> counts() const {
    std::vector<Index> numbers;
    for (const JsonValue& value : list()) numbers.push_back(value.count());
    return numbers;
  }
  [[nodiscard]] std::map<std::string, std::string> texts() const {
    require<InputError>(json_.is_object(), place_, " is ", json_.type_name(), ", expected an object");
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : json_.items())
      all[key] = JsonValue(value, concat(place_, ".", key)).text();
    return all;
  }
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  [[nodiscard]] bool is_index() const {
    return json_.is_number_integer() &&
           (!json_.is_number_unsigned() ||
            json_.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<Index>::max()});
  }
  static std::string shortened(const OrderedJson& json) {
    const std::string text = json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
    return text.size() <= 40 ? text : text.substr(0, 37) + "...";
  }

  const OrderedJson& json_;
  std::string place_;
};

/// Returns `name` and adds it to `taken`. Throws InputError if it is empty or already taken.
inline std::string unique_name(const JsonValue& value, const std::string& name,
                               std::set<std::string>& taken) {
  require<InputError>(!name.empty(), value.place(), " is empty, expected a name");
  require<InputError>(taken.insert(name).second, value.place(), ": there are several named ", name,
                      ", expected one");
  return name;
}

}}  // namespace sar
