#include <sar/bindings/c/options.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/json_value.hpp>

#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

using Names = std::vector<std::string>;

void require_known_keys(const JsonValue& options, const Names& known) {
  for (const std::string& key : options.keys())
    require<InputError>(std::ranges::find(known, key) != known.end(), options.place(), " has the key '", key,
                        "', expected one of ", joined(known));
}

/// Returns the value that belongs to the name in a list of names and values.
template <class Value>
Value named(const JsonValue& name, const std::vector<std::pair<std::string, Value>>& values) {
  Names expected;
  for (const auto& [text, value] : values) {
    if (text == name.text()) return value;
    expected.push_back(text);
  }
  throw InputError(concat(name.place(), " is '", name.text(), "', expected one of ", joined(expected)));
}

int small_number(const JsonValue& value) {
  const Index number = value.integer();
  require<InputError>(0 <= number && number <= std::numeric_limits<int>::max(), value.place(), " is ", number,
                      ", expected a number from 0 to ", std::numeric_limits<int>::max());
  return static_cast<int>(number);
}

/// Sets the numbers that a description of an optimizer gives; others stay as they are. Adds all to `call`.
void read_numbers(const JsonValue& file, CollectiveCall& call,
                  const std::vector<std::pair<const char*, double*>>& numbers) {
  Names known{"optimizer"};
  for (const auto& [key, number] : numbers) known.emplace_back(key);
  require_known_keys(file, known);
  for (const auto& [key, number] : numbers) {
    if (file.has(key)) *number = file.at(key).number();
    call.equal(key, *number);
  }
}

}  // namespace

HostGraphOptions graph_options(const std::string& text) {
  const std::string where = "the options of the graph";
  const JsonValue file = JsonValue::parse(text, where, "options of a graph", where);
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

std::unique_ptr<Optimizer> make_optimizer(const std::string& text, const Module& model,
                                          CollectiveCall& call) {
  const std::string where = "the description of the optimizer";
  const JsonValue file = JsonValue::parse(text, where, "the description of an optimizer", where);
  enum class Kind { sgd, adam, adamw };
  const auto kind =
      named<Kind>(file.at("optimizer"), {{"sgd", Kind::sgd}, {"adam", Kind::adam}, {"adamw", Kind::adamw}});
  call.equal("optimizer", file.at("optimizer").text());
  if (kind == Kind::sgd) {
    SGDOptions options;
    read_numbers(
        file, call,
        {{"lr", &options.lr}, {"weight_decay", &options.weight_decay}, {"momentum", &options.momentum}});
    return std::make_unique<SGD>(model.named_parameters(), options);
  }
  AdamOptions options;
  read_numbers(file, call,
               {{"lr", &options.lr},
                {"weight_decay", &options.weight_decay},
                {"beta1", &options.beta1},
                {"beta2", &options.beta2},
                {"eps", &options.eps}});
  if (kind == Kind::adam) return std::make_unique<Adam>(model.named_parameters(), options);
  return std::make_unique<AdamW>(model.named_parameters(), options);
}
}}}  // namespace sar
