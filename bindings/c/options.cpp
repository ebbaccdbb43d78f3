#include <sar/bindings/c/options.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/json_value.hpp>

#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

using Names = std::vector<std::string>;

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void require_known_keys(const JsonValue& options, const Names& known) {
  for (const std::string& key : options.keys())
    require<InputError>(std::ranges::find(known, key) != known.end(), options.place(), " has the key '", key,
                        "', expected one of ", listed(known));
}

/// Returns the value that belongs to the name in a list of names and values.
template <class Value>
Value named(const JsonValue& name, const std::vector<std::pair<std::string, Value>>& values) {
  Names expected;
  for (const auto& [text, value] : values) {
    if (text == name.text()) return value;
    expected.push_back(text);
  }
  throw InputError(concat(name.place(), " is '", name.text(), "', expected one of ", listed(expected)));
}

int small_number(const JsonValue& value) {
  const Index number = value.integer();
  require<InputError>(0 <= number && number <= std::numeric_limits<int>::max(), value.place(), " is ", number,
                      ", expected a number from 0 to ", std::numeric_limits<int>::max());
  return static_cast<int>(number);
}

double number_or(const JsonValue& options, const char* key, double otherwise) {
  return options.has(key) ? options.at(key).number() : otherwise;
}

}  // namespace

HostGraphOptions graph_options(const std::string& text) {
  const std::string where = "the options of the graph";
  const auto json = parse_json<OrderedJson>(text, where, "options of a graph");
  const JsonValue file(json, where);
  require_known_keys(file, {"add_reverse_edges", "mode", "pipeline_depth", "max_halo_bytes", "halo_format"});
  HostGraphOptions options;
  GraphOptions& graph = options.graph;
  if (file.has("add_reverse_edges")) options.add_reverse_edges = file.at("add_reverse_edges").flag();
  if (file.has("mode"))
    graph.mode = named<HaloMode>(file.at("mode"), {{"rematerialize", HaloMode::rematerialize},
                                                   {"sequential", HaloMode::sequential},
                                                   {"one_shot", HaloMode::one_shot}});
  if (file.has("pipeline_depth")) graph.pipeline_depth = small_number(file.at("pipeline_depth"));
  if (file.has("max_halo_bytes")) graph.max_halo_bytes = file.at("max_halo_bytes").integer();
  if (file.has("halo_format")) graph.halo_format = named(file.at("halo_format"), halo_formats());
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& text, const Module& model) {
  const std::string where = "the description of the optimizer";
  const auto json = parse_json<OrderedJson>(text, where, "the description of an optimizer");
  const JsonValue file(json, where);
  enum class Kind { sgd, adam, adamw };
  const auto kind =
      named<Kind>(file.at("optimizer"), {{"sgd", Kind::sgd}, {"adam", Kind::adam}, {"adamw", Kind::adamw}});
  if (kind == Kind::sgd) {
    require_known_keys(file, {"optimizer", "lr", "weight_decay", "momentum"});
    SGDOptions options;
    options.lr = number_or(file, "lr", options.lr);
    options.weight_decay = number_or(file, "weight_decay", options.weight_decay);
    options.momentum = number_or(file, "momentum", options.momentum);
    return std::make_unique<SGD>(model.named_parameters(), options);
  }
  require_known_keys(file, {"optimizer", "lr", "weight_decay", "beta1", "beta2", "eps"});
  AdamOptions options;
  options.lr = number_or(file, "lr", options.lr);
  options.weight_decay = number_or(file, "weight_decay", options.weight_decay);
  options.beta1 = number_or(file, "beta1", options.beta1);
  options.beta2 = number_or(file, "beta2", options.beta2);
  options.eps = number_or(file, "eps", options.eps);
  if (kind == Kind::adam) return std::make_unique<Adam>(model.named_parameters(), options);
  return std::make_unique<AdamW>(model.named_parameters(), options);
}

}}}  // namespace sar
