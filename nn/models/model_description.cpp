#include <sar/core/error.hpp>
#include <sar/core/files/json_value.hpp>
#include <sar/nn/models/model_description.hpp>

#include <algorithm>
#include <functional>
#include <initializer_list>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index version = 1, most_features = Index{1} << 24, most_layers = 1000;
constexpr const char* version_key = "sar_model";

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Returns "a, b or c".
std::string alternatives(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

/// A JSON key, the network types that read it, and the member that it sets.
struct Key {
  const char* name;
  Names types;  // empty: all types
  std::function<void(ModelDescription&, const JsonValue&)> read;
  std::function<OrderedJson(const ModelDescription&)> write;
  bool is_required = false;
};

Key text_key(const char* name, Names types, std::string ModelDescription::*member, bool is_required = false) {
  return {name, std::move(types), [=](ModelDescription& d, const JsonValue& v) { d.*member = v.text(); },
          [=](const ModelDescription& d) -> OrderedJson { return d.*member; }, is_required};
}

Key integer_key(const char* name, Names types, Index ModelDescription::*member, bool is_required = false) {
  return {name, std::move(types), [=](ModelDescription& d, const JsonValue& v) { d.*member = v.integer(); },
          [=](const ModelDescription& d) -> OrderedJson { return d.*member; }, is_required};
}

Key number_key(const char* name, Names types, double ModelDescription::*member) {
  return {name, std::move(types), [=](ModelDescription& d, const JsonValue& v) { d.*member = v.number(); },
          [=](const ModelDescription& d) -> OrderedJson { return d.*member; }};
}

Key flag_key(const char* name, Names types, bool ModelDescription::*member) {
  return {name, std::move(types), [=](ModelDescription& d, const JsonValue& v) { d.*member = v.flag(); },
          [=](const ModelDescription& d) -> OrderedJson { return d.*member; }};
}

/// Accepts a number, or a boolean as 1 or 0.
Key residual_key(Names types) {
  Key key = integer_key("residual", std::move(types), &ModelDescription::residual);
  key.read = [](ModelDescription& d, const JsonValue& v) {
    d.residual = v.is_boolean() ? Index{v.flag()} : v.integer();
  };
  return key;
}

const std::vector<Key>& keys() {
  using D = ModelDescription;
  static const Names stacks{"sage", "gcn", "gat", "gatv2", "gin"}, attending{"gat", "gatv2"},
      mesh{"mesh_graph_net"};
  static const std::vector<Key> all{
      text_key("type", {}, &D::type, true),
      integer_key("in_feats", {}, &D::in_feats, true),
      integer_key("hidden", {}, &D::hidden),
      integer_key("out_feats", {}, &D::out_feats, true),
      integer_key("layers", {}, &D::layers),
      text_key("norm", stacks, &D::norm),
      text_key("activation", {}, &D::activation),
      number_key("dropout", stacks, &D::dropout),
      text_key("aggregator", {"sage", "gin"}, &D::aggregator),
      integer_key("heads", attending, &D::heads),
      integer_key("out_heads", attending, &D::out_heads),
      number_key("attention_dropout", attending, &D::attention_dropout),
      residual_key(attending),
      integer_key("edge_feats", mesh, &D::edge_feats, true),
      integer_key("mlp_layers", mesh, &D::mlp_layers),
      flag_key("normalize", mesh, &D::normalize),
      text_key("weights", {}, &D::weights),
  };
  return all;
}

bool reads(const Key& key, const std::string& type) {
  return key.types.empty() || has(key.types, type);
}

bool reads(const std::string& type, const std::string& name) {
  return std::ranges::any_of(keys(), [&](const Key& key) { return key.name == name && reads(key, type); });
}

void require_type(const std::string& type, const std::string& where) {
  require<InputError>(has(ModelDescription::types(), type), where, ".type is '", type, "', expected ",
                      alternatives(ModelDescription::types()));
}

/// Checks the format version first, because another version may have other keys.
void require_version(const JsonValue& file) {
  const JsonValue found = file.at(version_key);
  require<InputError>(found.integer() == version, found.place(), " is ", found.integer(), ", expected ",
                      version, ", the version of the format that this library reads");
}

void require_known_keys(const JsonValue& file, const std::string& type) {
  for (const std::string& name : file.keys()) {
    if (name == version_key || reads(type, name)) continue;
    Names expected{version_key};
    for (const Key& key : keys())
      if (reads(key, type)) expected.push_back(key.name);
    throw InputError(concat(file.place(), " has the key '", name, "', which a network of type ", type,
                            " has not, expected ", alternatives(expected)));
  }
}

/// Checks one description.
class Check {
 public:
  Check(const ModelDescription& d, const std::string& where) : d_(d), where_(where) {}

  void number(const char* key, Index value, Index low = 1, Index high = most_features) const {
    require<InputError>(!reads(d_.type, key) || (low <= value && value <= high), where_, ".", key, " is ",
                        value, ", expected a whole number from ", low, " to ", high);
  }
  void share(const char* key, double value) const {
    require<InputError>(!reads(d_.type, key) || (0 <= value && value < 1), where_, ".", key, " is ", value,
                        ", expected a number from 0 on and below 1");
  }
  void name(const char* key, const std::string& value, const Names& expected) const {
    require<InputError>(!reads(d_.type, key) || has(expected, value), where_, ".", key, " is '", value,
                        "', expected ", alternatives(expected));
  }

 private:
  const ModelDescription& d_;
  const std::string& where_;
};

Names aggregators(const std::string& type) {
  return type == "gin" ? Names{"sum", "mean", "max", "min"} : Names{"mean", "gcn", "pool", "lstm"};
}

}  // namespace

const std::vector<std::string>& ModelDescription::types() {
  static const Names names{"sage", "gcn", "gat", "gatv2", "gin", "mesh_graph_net"};
  return names;
}

const std::vector<std::string>& ModelDescription::activations() {
  static const Names names{"none", "relu", "leaky_relu", "elu",     "gelu",
                           "silu", "tanh", "sigmoid",    "softplus"};
  return names;
}

ModelDescription ModelDescription::from_json(const std::string& text, const std::string& where) {
  const auto json = parse_json<OrderedJson>(text, where, "the description of a network");
  const JsonValue file(json, where);
  require_version(file);
  ModelDescription d;
  d.type = file.at("type").text();
  require_type(d.type, where);
  require_known_keys(file, d.type);
  for (const Key& key : keys())
    if (reads(key, d.type) && (key.is_required || file.has(key.name))) key.read(d, file.at(key.name));
  return d.checked(where);
}

std::string ModelDescription::to_json() const {
  const ModelDescription d = checked();
  OrderedJson json;
  json[version_key] = version;
  for (const Key& key : keys())
    if (reads(key, type) && (std::string(key.name) != "weights" || !weights.empty()))
      json[key.name] = key.write(d);
  return json.dump();
}

ModelDescription ModelDescription::checked(const std::string& where) const {
  require_type(type, where);
  ModelDescription d = *this;
  const bool has_heads = reads(type, "heads");
  if (d.norm.empty()) d.norm = "none";
  if (d.activation.empty()) d.activation = has_heads ? "elu" : "relu";
  if (d.aggregator.empty()) d.aggregator = aggregators(type)[0];
  const Check check(d, where);
  check.number("in_feats", in_feats);
  check.number("hidden", hidden);
  check.number("out_feats", out_feats);
  check.number("layers", layers, type == "mesh_graph_net" ? 0 : 1, most_layers);
  check.number("edge_feats", edge_feats);
  check.number("mlp_layers", mlp_layers, 1, most_layers);
  check.number("heads", heads);
  check.number("out_heads", out_heads);
  check.number("residual", residual, 0, layers);
  check.share("dropout", dropout);
  check.share("attention_dropout", attention_dropout);
  check.name("norm", d.norm, {"none", "batch", "layer"});
  check.name("activation", d.activation, activations());
  check.name("aggregator", d.aggregator, aggregators(type));
  require<InputError>(!has_heads || hidden % heads == 0, where, ".hidden is ", hidden,
                      ", expected a multiple of .heads, ", heads);
  require<InputError>(edge_feats == 0 || reads(type, "edge_feats"), where, ".edge_feats is ", edge_feats,
                      ", expected 0 for a network of type ", type, ", which reads no rows of edges");
  return d;
}

}}  // namespace sar
