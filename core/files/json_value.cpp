// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/files/json_value.hpp>
#include <sar/core/files/parse_json.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

bool is_index(const Json& json) {
  return json.is_number_integer() &&
         (!json.is_number_unsigned() ||
          json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<Index>::max()});
}

/// Returns the value as a message shows it.
std::string shortened(const Json& json) {
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 40 ? text : concat(std::string_view(text).substr(0, 37), "...");
}

}  // namespace

JsonValue::JsonValue(std::shared_ptr<const Json> json, std::string place)
    : json_(std::move(json)), place_(std::move(place)) {}

JsonValue JsonValue::parse(const std::string& text, const std::string& what, const std::string& expected,
                           const std::string& place) {
  return {std::make_shared<const Json>(parse_json(text, what, expected)), place};
}

JsonValue JsonValue::part(const Json& json, std::string place) const {
  return {{json_, &json}, std::move(place)};
}

void JsonValue::expect(bool condition, const char* expected) const {
  if (condition) return;
  throw InputError(concat(place_, " is ", json_->is_structured() ? json_->type_name() : shortened(*json_),
                          ", expected ", expected));
}

JsonValue JsonValue::at(const char* key) const {
  expect(json_->is_object(), "an object");
  const auto found = json_->find(key);
  require<InputError>(found != json_->end(), place_, " has no ", key, ", expected one");
  return part(*found, concat(place_, ".", key));
}

bool JsonValue::has(const char* key) const {
  return json_->is_object() && json_->contains(key);
}

std::vector<JsonValue> JsonValue::list() const {
  expect(json_->is_array(), "a list");
  std::vector<JsonValue> values;
  for (const Json& element : *json_) values.push_back(part(element, concat(place_, "[", values.size(), "]")));
  return values;
}

std::string JsonValue::text() const {
  expect(json_->is_string(), "a text");
  return json_->get<std::string>();
}

Index JsonValue::count() const {
  expect(is_index(*json_) && json_->get<Index>() >= 0, "a whole number from 0 on");
  return json_->get<Index>();
}

Index JsonValue::integer() const {
  expect(is_index(*json_), "a whole number");
  return json_->get<Index>();
}

double JsonValue::number() const {
  expect(json_->is_number(), "a number");
  return json_->get<double>();
}

bool JsonValue::is_boolean() const {
  return json_->is_boolean();
}

bool JsonValue::flag() const {
  expect(is_boolean(), "true or false");
  return json_->get<bool>();
}

std::vector<std::string> JsonValue::keys() const {
  expect(json_->is_object(), "an object");
  std::vector<std::string> names;
  for (const auto& element : json_->items()) names.push_back(element.key());
  return names;
}

std::vector<Index> JsonValue::counts() const {
  std::vector<Index> numbers;
  for (const JsonValue& value : list()) numbers.push_back(value.count());
  return numbers;
}

std::map<std::string, std::string> JsonValue::texts() const {
  std::map<std::string, std::string> all;
  for (const std::string& key : keys()) all[key] = at(key.c_str()).text();
  return all;
}

std::string format_json(const OrderedJson& json) {
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string unique_name(const JsonValue& value, const std::string& name, std::set<std::string>& taken) {
  require<InputError>(!name.empty(), value.place(), " is empty, expected a name");
  require<InputError>(taken.insert(name).second, value.place(), ": there are several named ", name,
                      ", expected one");
  return name;
}

}}  // namespace sar
