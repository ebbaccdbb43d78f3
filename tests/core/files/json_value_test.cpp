// SPDX-License-Identifier: MIT

/// JSON: what is read, and what the JSON library would accept.
#include <sar/core/files/json.hpp>

#include "support/thrown.hpp"

#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sar;
using sar::test::thrown;

namespace {

JsonValue parse(const std::string& text) {
  return JsonValue::parse(text, "x.json: the file", "a description", "x.json");
}

std::string error_of(const std::string& text) {
  return thrown<InputError>([&] { static_cast<void>(parse(text)); });
}

}  // namespace

TEST_CASE("every type of value is read, in objects and lists, at its place") {
  const JsonValue root = parse(
      R"( {"z": [1, -2, [true, {"deep": "te\u00fcxt"}]], "a": {"n": 0.5, "e": {}, "l": []}, "none": null} )");
  CHECK(root.keys() == std::vector<std::string>{"a", "none", "z"});
  const std::vector<JsonValue> list = root.at("z").list();
  REQUIRE(list.size() == 3);
  CHECK(list[0].count() == 1);
  CHECK(list[1].integer() == -2);
  CHECK(list[2].list()[0].flag());
  CHECK(list[2].list()[1].at("deep").text() == "te\xc3\xbcxt");
  CHECK(list[2].list()[1].at("deep").place() == "x.json.z[2][1].deep");
  CHECK(root.at("a").at("n").number() == 0.5);
  CHECK(root.at("a").at("e").keys().empty());
  CHECK(root.at("a").at("l").list().empty());
  CHECK(thrown<InputError>([&] { static_cast<void>(root.at("none").count()); }) ==
        "x.json.none is null, expected a whole number from 0 on");
  CHECK(parse("9223372036854775807").count() == 9223372036854775807);
  CHECK(parse("-9223372036854775808").integer() == -9223372036854775807 - 1);
}

TEST_CASE("text that is no JSON is refused at its byte") {
  CHECK(error_of("") == "x.json: the file is no JSON at its byte 1, expected a description");
  CHECK(error_of("{\"a\": 1,}") == "x.json: the file is no JSON at its byte 9, expected a description");
  CHECK(error_of("{\"a\": 1} 2") == "x.json: the file is no JSON at its byte 10, expected a description");
  CHECK(error_of("[1e999]") == "x.json: the file has a number that is too large, expected a description");
}

TEST_CASE("a name that is there twice is refused, wherever; nesting has an end") {
  const std::string twice = "x.json: the file has the name 'a' twice, expected names that differ";
  CHECK(error_of(R"({"a": 1, "b": 2, "a": 1})") == twice);
  CHECK(error_of(R"([{"b": {"a": {}, "a": []}}])") == twice);
  CHECK(error_of(R"([{"a": {"a": 1}}, {"a": 2}])") == "nothing");
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(error_of(nested(64)) == "nothing");
  CHECK(error_of(nested(65)) == "x.json: the file has values nested 65 deep, expected 64 at most");
  CHECK(error_of(std::string(1000000, '[')).find("nested 65 deep") != std::string::npos);
}

TEST_CASE("an object with many members") {
  std::string text = "{";
  for (int i = 0; i < 20000; ++i) text += concat(i > 0 ? "," : "", "\"", i, "\":{\"shape\":[", i, "]}");
  const JsonValue root = parse(text + "}");
  REQUIRE(root.keys().size() == 20000);
  CHECK(root.at("12345").at("shape").all<&JsonValue::count>() == std::vector<Index>{12345});
}
