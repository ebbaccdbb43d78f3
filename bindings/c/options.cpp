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

void read_field(const JsonValue& value, bool& field) {
  field = value.flag();
}
void read_field(const JsonValue& value, Index& field) {
  field = value.integer();
}
void read_field(const JsonValue& value, int& field) {
  const Index number = value.integer();
  require<InputError>(0 <= number && number <= std::numeric_limits<int>::max(), value.place(), " is ", number,
                      ", expected a number from 0 to ", std::numeric_limits<int>::max());
  field = static_cast<int>(number);
}
void read_field(const JsonValue& value, HaloMode& field) {
  field = named(value, named_values(halo_mode_names));
}
void read_field(const JsonValue& value, HaloFormat& field) {
  field = named(value, halo_formats());
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
  Names known{"add_reverse_edges"};
  HostGraphOptions options;
  if (file.has("add_reverse_edges")) options.add_reverse_edges = file.at("add_reverse_edges").flag();
  for_each_field(options.graph, [&](const char* key, auto& field) {
    known.emplace_back(key);
    if (file.has(key)) read_field(file.at(key), field);
  });
  require_known_keys(file, known);
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
