// SPDX-License-Identifier: MIT

// The JSON library parses the text and calls Builder for each value and name. Builder keeps a stack of the
// objects and arrays that are open, at most max_depth of them, and adds each value to the innermost. It
// rejects a name when it is read, before its value.
#include <sar/core/files/parse_json.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
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
