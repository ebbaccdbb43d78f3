// SPDX-License-Identifier: MIT
#include <sar/core/files/json.hpp>

#include <cstddef>
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

// The JSON library parses the text and calls Builder for each value and name. Builder keeps a stack of the
// objects and arrays that are open, at most max_depth of them, and adds each value to the innermost. It
// rejects a name when it is read, before its value.

namespace {

/// Builds a value from the events of the parser. A callback of Json::parse would see the same names, but with
/// one the JSON library visits all members of an object again after each of them: quadratic time.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& what, const std::string& expected, std::size_t max_depth)
      : what_(what), expected_(expected), max_depth_(max_depth) {}

  Json root;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // never: JSON text has no binary values

  bool start_object(std::size_t /*size*/) override { return open(Json::value_t::object); }
  bool key(string_t& name) override {
    const auto [member, is_new] =
        open_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name), nullptr);
    require<InputError>(is_new, what_, " has the name '", member->first,
                        "' twice, expected names that differ");
    member_ = &member->second;
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json::value_t::array); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& error) override {
    constexpr int out_of_range_number = 406;
    if (error.id == out_of_range_number)
      throw InputError(concat(what_, " has a number that is too large, expected ", expected_));
    throw InputError(concat(what_, " is no JSON at its byte ", position, ", expected ", expected_));
  }

 private:
  /// Returns where the next value belongs.
  Json& place() {
    if (open_.empty()) return root;
    return open_.back()->is_array() ? open_.back()->get_ref<Json::array_t&>().emplace_back() : *member_;
  }
  template <class T>
  bool add(T&& value) {
    place() = std::forward<T>(value);
    return true;
  }
  bool open(Json::value_t type) {
    require<InputError>(open_.size() < max_depth_, what_, " has values nested ", open_.size() + 1,
                        " deep, expected ", max_depth_, " at most");
    Json& opened = place();
    opened = Json(type);
    open_.push_back(&opened);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& what_;
  const std::string& expected_;
  std::size_t max_depth_;
  std::vector<Json*> open_;  // objects and arrays that have not ended, the outermost first
  Json* member_ = nullptr;   // of the innermost object: the one whose name was read last
};

}  // namespace

Json parse_json(const std::string& text, const std::string& what, const std::string& expected,
                std::size_t max_depth) {
  // the parser would take a NUL for the end of the text
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos)
    throw InputError(concat(what, " is no JSON at its byte ", nul + 1, ", expected ", expected));
  Builder builder(what, expected, max_depth);
  Json::sax_parse(text, &builder);
  return std::move(builder.root);
}
}}  // namespace sar
