// SPDX-License-Identifier: MIT
#include "plan_rates.hpp"

#include <sar/core/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace sar::tools {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Linear2& line) {
  return {{"per_node", line.per_node}, {"per_edge", line.per_edge}};
}

/// Visits the fields of a file of rates: `visit(name, number)` and `visit(name, line)`.
template <class R, class Visit>
void for_each_rate(R& rates, const Visit& visit) {
  visit("nodes", rates.nodes);
  visit("degree", rates.degree);
  visit("forward_seconds", rates.forward);
  visit("backward_seconds", rates.backward);
  visit("evaluation_seconds", rates.evaluation);
  visit("copied_bytes_per_second", rates.copied_bytes);
  visit("exchange_seconds_per_byte", rates.byte_seconds);
  visit("exchange_seconds_per_added_byte", rates.added_byte_seconds);
  visit("exchange_seconds_per_step", rates.step_seconds);
  visit("peak_bytes", rates.peak);
  visit("fetch_bytes", rates.fetch);
  visit("push_bytes", rates.push);
  visit("rest_bytes", rates.rest);
  visit("index_bytes", rates.index);
  visit("parameters", rates.parameters);
}

}  // namespace

std::string to_text(const Rates& rates) {
  Json json{{"model", rates.model}, {"threads", rates.threads}, {"ranks", rates.ranks}};
  struct Writer {
    Json& json;
    void operator()(const char* name, double number) const { json[name] = number; }
    void operator()(const char* name, const Linear2& line) const { json[name] = to_json(line); }
  };
  for_each_rate(rates, Writer{json});
  json["edge_passes"] = Json::array();
  for (const EdgePass& pass : rates.edges)
    json["edge_passes"].push_back({{"width", pass.width},
                                   {"backward", pass.is_backward},
                                   {"fetches", pass.fetches},
                                   {"pushes", pass.pushes}});
  return json.dump(2) + "\n";
}

Rates parse_rates(const std::string& text, const std::string& file) {
  constexpr const char* expected = "a file that plan --rates has written";
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  require<InputError>(!json.is_discarded(), file, ": the file is no JSON, expected ", expected);
  const auto number = [&](const nlohmann::json& of, const char* name) {
    const bool has = of.is_object() && of.contains(name) && of[name].is_number();
    const double value = has ? of[name].get<double>() : -1;
    require<InputError>(value >= 0 && std::isfinite(value), file, ": there is no number '", name,
                        "' of 0 or more, expected ", expected);
    return value;
  };
  Rates rates;
  require<InputError>(json.is_object() && json.contains("model") && json["model"].is_string(), file,
                      ": there is no text 'model', expected a file that plan --rates has written");
  rates.model = json["model"].get<std::string>();
  const double threads = number(json, "threads");
  require<InputError>(threads >= 1 && threads <= 1024, file, ": 'threads' is ", threads,
                      ", expected 1 to 1024");
  rates.threads = static_cast<int>(threads);
  const double ranks = number(json, "ranks");
  require<InputError>(ranks >= 1 && ranks <= 1 << 20, file, ": 'ranks' is ", ranks,
                      ", expected 1 to 1048576");
  rates.ranks = static_cast<int>(ranks);
  for_each_rate(rates, [&]<class T>(const char* name, T& value) {
    if constexpr (std::is_same_v<T, Linear2>) {
      require<InputError>(json.contains(name), file, ": there is no '", name,
                          "', expected a file that plan --rates has written");
      value = {number(json[name], "per_node"), number(json[name], "per_edge")};
    } else {
      value = number(json, name);
    }
  });
  require<InputError>(json.contains("edge_passes") && json["edge_passes"].is_array(), file,
                      ": there is no list 'edge_passes', expected ", expected);
  const auto flag = [&](const nlohmann::json& of, const char* name) {
    require<InputError>(of.contains(name) && of[name].is_boolean(), file, ": an edge pass does not say '",
                        name, "', expected ", expected);
    return of[name].get<bool>();
  };
  for (const auto& pass : json["edge_passes"])
    rates.edges.push_back({.width = std::max<Index>(1, static_cast<Index>(number(pass, "width"))),
                           .is_backward = flag(pass, "backward"),
                           .fetches = flag(pass, "fetches"),
                           .pushes = flag(pass, "pushes")});
  require<InputError>(rates.copied_bytes > 0, file, ": 'copied_bytes_per_second' is 0, expected more");
  return rates;
}

}  // namespace sar::tools
