// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/text.hpp>
#include <sar/nn/atoms/zbl.hpp>
#include <sar/nn/models/model_description.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index version = 1, most_features = Index{1} << 24;

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

template <class Holds>
Names names_where(const Holds& holds) {
  Names names;
  for (const ModelType& type : model_types())
    if (holds(type)) names.push_back(type.name);
  return names;
}

/// Returns null if there is no such type.
const ModelType* find_type(const std::string& name) {
  const auto& types = model_types();
  const auto found = std::ranges::find(types, name, &ModelType::name);
  return found == types.end() ? nullptr : &*found;
}

using NamedActivation = std::pair<std::string, Activation>;

const std::vector<NamedActivation>& named_activations() {
  static const std::vector<NamedActivation> all{
      {"none", [](Variable y) { return y; }},
      {"relu", [](Variable y) { return relu(std::move(y)); }},
      {"leaky_relu", [](Variable y) { return leaky_relu(std::move(y)); }},
      {"elu", [](Variable y) { return elu(std::move(y)); }},
      {"gelu", [](Variable y) { return gelu(std::move(y)); }},
      {"silu", [](Variable y) { return silu(std::move(y)); }},
      {"tanh", [](Variable y) { return tanh(std::move(y)); }},
      {"sigmoid", [](Variable y) { return sigmoid(std::move(y)); }},
      {"softplus", [](Variable y) { return softplus(std::move(y)); }},
  };
  return all;
}

/// A JSON key and the member that it sets.
struct Key {
  const char* name;
  void (*read)(ModelDescription&, const JsonValue&);
  OrderedJson (*write)(const ModelDescription&);
  bool is_required = false;
  bool (*is_written)(const ModelDescription&) = nullptr;  ///< null: always
};

/// A key that is written where a condition holds.
constexpr Key written_if(bool (*condition)(const ModelDescription&), Key key) {
  key.is_written = condition;
  return key;
}

/// A key of a member, whose JSON value `get` reads.
template <auto member, auto get>
constexpr Key key(const char* name, bool is_required = false) {
  return {name, [](ModelDescription& d, const JsonValue& v) { d.*member = std::invoke(get, v); },
          [](const ModelDescription& d) -> OrderedJson { return d.*member; }, is_required};
}

/// A name, or the number of the first layer with a residual connection; true is 1.
constexpr Key residual_key() {
  return {"residual",
          [](ModelDescription& d, const JsonValue& v) {
            if (v.is_boolean())
              d.residual = v.flag() ? "1" : "none";
            else
              d.residual = v.json().is_string() ? v.text() : std::to_string(v.integer());
          },
          [](const ModelDescription& d) -> OrderedJson {
            if (const std::optional<Index> first = to_number<Index>(d.residual)) return *first;
            return d.residual;
          }};
}

/// A number for all layers but the last, or a list with one for each.
constexpr Key heads_key() {
  return {"heads",
          [](ModelDescription& d, const JsonValue& v) {
            if (!v.json().is_array()) {
              d.heads = v.integer();
              return;
            }
            for (const JsonValue& each : v.list()) d.heads_of_layers.push_back(each.integer());
            require<InputError>(!d.heads_of_layers.empty(), v.place(),
                                " has no number, expected one for each layer");
          },
          [](const ModelDescription& d) -> OrderedJson {
            if (!d.heads_of_layers.empty()) return d.heads_of_layers;
            return d.heads;
          }};
}

constexpr Key edge_types_key() {
  return {"edge_types",
          [](ModelDescription& d, const JsonValue& v) {
            for (const JsonValue& each : v.list()) {
              const std::vector<JsonValue> names = each.list();
              require<InputError>(names.size() == 3, each.place(), " has ", names.size(),
                                  " names, expected source type, relation and destination type");
              d.edge_types.push_back({names[0].text(), names[1].text(), names[2].text()});
            }
          },
          [](const ModelDescription& d) -> OrderedJson {
            OrderedJson types = OrderedJson::array();
            for (const EdgeType& type : d.edge_types) {
              OrderedJson names = OrderedJson::array();
              for (const std::string& name : {type.source, type.relation, type.destination})
                names.push_back(name);
              types.push_back(std::move(names));
            }
            return types;
          },
          true};
}

using D = ModelDescription;
using J = JsonValue;

constexpr auto has_weight_file = [](const D& d) { return !d.weights.empty(); };
constexpr auto has_one_number_of_heads = [](const D& d) { return d.heads_of_layers.empty(); };
constexpr auto has_edge_feats = [](const D& d) { return d.edge_feats > 0; };
constexpr auto reads_radii = [](const D& d) { return d.reads_radii(); };
constexpr auto has_zbl_distances = [](const D& d) { return d.zbl_outer > 0; };
constexpr auto has_zbl_power = [](const D& d) { return d.zbl_power > 0; };
constexpr auto is_committee = [](const D& d) { return d.committee > 1; };

constexpr Key all_keys[] = {
    key<&D::type, &J::text>("type", true),
    key<&D::in_feats, &J::integer>("in_feats", true),
    key<&D::hidden, &J::integer>("hidden"),
    key<&D::out_feats, &J::integer>("out_feats", true),
    key<&D::layers, &J::integer>("layers"),
    key<&D::norm, &J::text>("norm"),
    key<&D::activation, &J::text>("activation"),
    key<&D::dropout, &J::number>("dropout"),
    {"input_dropout", [](D& d, const J& v) { d.input_dropout = v.number(); },
     [](const D& d) -> OrderedJson { return d.input_dropout.value_or(-1); }},
    key<&D::aggregator, &J::text>("aggregator"),
    key<&D::gcn_norm, &J::text>("gcn_norm"),
    heads_key(),
    written_if(has_one_number_of_heads, key<&D::out_heads, &J::integer>("out_heads")),
    key<&D::attention_dropout, &J::number>("attention_dropout"),
    residual_key(),
    key<&D::jk, &J::text>("jk"),
    key<&D::pre_linear, &J::flag>("pre_linear"),
    written_if(has_readout, key<&D::readout, &J::text>("readout")),
    written_if(has_readout, key<&D::head_layers, &J::integer>("head_layers")),
    written_if(has_edge_feats, key<&D::edge_feats, &J::integer>("edge_feats", true)),
    key<&D::mlp_layers, &J::integer>("mlp_layers"),
    key<&D::normalize, &J::flag>("normalize"),
    key<&D::num_bases, &J::integer>("num_bases"),
    key<&D::species, &J::all<&J::text>>("species", true),
    key<&D::cutoff, &J::number>("cutoff", true),
    key<&D::num_basis, &J::integer>("num_basis"),
    key<&D::radial_basis, &J::text>("radial_basis"),
    key<&D::cutoff_function, &J::text>("cutoff_function"),
    written_if(has_zbl_distances, key<&D::zbl_inner, &J::number>("zbl_inner")),
    written_if(has_zbl_distances, key<&D::zbl_outer, &J::number>("zbl_outer")),
    key<&D::norm_epsilon, &J::number>("norm_epsilon"),
    key<&D::energy_shifts, &J::all<&J::number>>("energy_shifts"),
    key<&D::energy_scales, &J::all<&J::number>>("energy_scales"),
    key<&D::max_l, &J::integer>("max_l"),
    key<&D::hidden_l, &J::integer>("hidden_l"),
    key<&D::correlation, &J::integer>("correlation"),
    key<&D::residual_first, &J::flag>("residual_first"),
    key<&D::density, &J::flag>("density"),
    key<&D::cutoff_power, &J::integer>("cutoff_power"),
    key<&D::distance_transform, &J::text>("distance_transform"),
    key<&D::radial_hidden, &J::integer>("radial_hidden"),
    key<&D::radial_layers, &J::integer>("radial_layers"),
    key<&D::readout_hidden, &J::integer>("readout_hidden"),
    key<&D::neighbors, &J::number>("neighbors"),
    written_if(reads_radii, key<&D::covalent_radii, &J::all<&J::number>>("covalent_radii")),
    written_if(has_zbl_power, key<&D::zbl_power, &J::integer>("zbl_power")),
    written_if(has_zbl_power, key<&D::zbl_scale, &J::number>("zbl_scale")),
    written_if(is_committee, key<&D::committee, &J::integer>("committee")),
    written_if(is_committee, key<&D::deviation_scales, &J::all<&J::number>>("deviation_scales")),
    key<&D::node_types, &J::all<&J::text>>("node_types", true),
    edge_types_key(),
    {"inputs",
     [](D& d, const J& v) {
       for (const std::string& type : v.keys()) d.inputs[type] = v.at(type.c_str()).integer();
     },
     [](const D& d) -> OrderedJson { return d.inputs; }, false, [](const D& d) { return !d.inputs.empty(); }},
    written_if(has_weight_file, key<&D::weights, &J::text>("weights")),
};

bool reads(const std::string& type, const std::string& key) {
  static const Names of_all_types{"type",   "in_feats",   "hidden", "out_feats",
                                  "layers", "activation", "weights"};
  static const Names of_relations{"node_types", "edge_types", "inputs"};
  static const Names of_potentials{"type", "hidden", "layers", "weights"};
  const ModelType& row = model_type(type);
  return has(row.is_potential ? of_potentials : of_all_types, key) || row.reads(key) ||
         (row.has_relations && has(of_relations, key));
}

/// Stacks have no edge features by default.
bool is_required(const Key& key, const std::string& type) {
  return key.is_required && !(std::string(key.name) == "edge_feats" && model_type(type).is_stack());
}

void require_type(bool is_type, const std::string& type, const std::string& where) {
  require<InputError>(is_type, where, ".type is '", type, "', expected ",
                      model_types_where([](const ModelType&) { return true; }));
}

/// Throws InputError, beginning with `where`, for a name that is empty or there twice.
void require_names_differ(const Names& names, const std::string& where) {
  std::set<std::string_view> known;
  for (const std::string& name : names)
    require<InputError>(!name.empty() && known.insert(name).second, where, " has '", name,
                        name.empty() ? "'" : "' twice", ", expected names that differ");
}

/// Checks node and edge types and the widths of their rows.
void check_types(const ModelDescription& d, const std::string& where) {
  require_names_differ(d.node_types, concat(where, ".node_types"));
  const std::set<std::string> node_types(d.node_types.begin(), d.node_types.end());
  const auto is_node_type = [&](const std::string& name) {
    if (!node_types.contains(name))
      throw InputError(
          concat(where, ": there is no node type '", name, "', expected ", alternatives(d.node_types)));
  };
  std::set<std::array<std::string, 3>> edge_types;
  for (const EdgeType& type : d.edge_types) {
    is_node_type(type.source);
    is_node_type(type.destination);
    if (!edge_types.insert({type.source, type.relation, type.destination}).second)
      throw InputError(
          concat(where, ".edge_types has '", type.canonical_name(), "' twice, expected types that differ"));
  }
  for (const auto& [type, width] : d.inputs) {
    is_node_type(type);
    require<InputError>(1 <= width && width <= most_features, where, ".inputs.", type, " is ", width,
                        ", expected a whole number from 1 to ", most_features);
  }
}

/// Checks what potentials have besides widths.
void check_potential(const ModelDescription& d, const std::string& where) {
  require<InputError>(!d.species.empty(), where, ".species has no name, expected one or more");
  require_names_differ(d.species, concat(where, ".species"));
  const auto positive = [&](const char* key, double value) {
    require<InputError>(value > 0 && std::isfinite(value), where, ".", key, " is ", value,
                        ", expected a positive number");
  };
  positive("cutoff", d.cutoff);
  positive("norm_epsilon", d.norm_epsilon);
  positive("neighbors", d.neighbors);
  require<InputError>(
      d.zbl_outer == 0 ? d.zbl_inner == 0
                       : 0 <= d.zbl_inner && d.zbl_inner < d.zbl_outer && d.zbl_outer <= d.cutoff,
      where, ".zbl_inner is ", d.zbl_inner, " and .zbl_outer is ", d.zbl_outer,
      ", expected two distances up to the cutoff ", d.cutoff, ", the second one larger, or 0");
  for (const std::string& name : d.species)
    require<InputError>((d.zbl_outer == 0 && d.zbl_power == 0) || atomic_number(name) > 0, where,
                        ".species has '", name, "', expected chemical symbols with .zbl_outer or .zbl_power");
  const auto of_species = [&](const char* key, const std::vector<double>& values) {
    require<InputError>(values.size() == d.species.size(), where, ".", key, " has ", values.size(),
                        " numbers, expected one for each of ", d.species.size(), " species");
    for (const double value : values)
      require<InputError>(std::isfinite(value), where, ".", key, " has ", value, ", expected finite numbers");
  };
  of_species("energy_shifts", d.energy_shifts);
  of_species("energy_scales", d.energy_scales);
  require<InputError>(d.hidden_l <= d.max_l, where, ".hidden_l is ", d.hidden_l,
                      ", expected a number up to .max_l, ", d.max_l);
  require<InputError>(d.zbl_power == 0 || d.zbl_outer == 0, where,
                      " has .zbl_outer and .zbl_power, expected one of them");
  require<InputError>(std::isfinite(d.zbl_scale), where, ".zbl_scale is ", d.zbl_scale,
                      ", expected a number");
  if (d.reads_radii()) of_species("covalent_radii", d.covalent_radii);
  for (const double radius : d.covalent_radii) positive("covalent_radii", radius);
  constexpr Index most_heads = 64;
  require<InputError>(d.committee >= 1 && d.committee <= most_heads, where, ".committee is ", d.committee,
                      ", expected a number of heads from 1 to ", most_heads);
  require<InputError>(d.deviation_scales.size() == 2, where, ".deviation_scales has ",
                      d.deviation_scales.size(), " numbers, expected two, of energies and forces");
  for (const double scale : d.deviation_scales) positive("deviation_scales", scale);
}

void require_known_keys(const JsonValue& file, const std::string& type) {
  for (const std::string& name : file.keys()) {
    if (name == version_key || reads(type, name)) continue;
    Names expected{version_key};
    for (const Key& key : all_keys)
      if (reads(type, key.name)) expected.push_back(key.name);
    throw InputError(concat(file.place(), " has the key '", name, "', which a network of type ", type,
                            " has not, expected ", alternatives(expected)));
  }
}

/// Returns the description with the defaults of its type in place of empty strings.
ModelDescription with_defaults(ModelDescription d, const ModelType& row) {
  for (std::string* const text : {&d.norm, &d.residual, &d.jk, &d.readout})
    if (text->empty()) *text = "none";
  if (has_readout(d) && d.jk == "none") d.jk = "last";
  if (d.residual == "0") d.residual = "none";
  if (!d.edge_types.empty()) d.num_rels = std::ssize(d.edge_types);
  if (row.is_potential && d.energy_shifts.empty()) d.energy_shifts.assign(d.species.size(), 0);
  if (row.is_potential && d.energy_scales.empty()) d.energy_scales.assign(d.species.size(), 1);
  if (d.activation.empty()) d.activation = row.attends() ? "elu" : "relu";
  if (d.aggregator.empty() && !row.aggregators.empty()) d.aggregator = row.aggregators[0];
  if (d.type == "gcn" && d.gcn_norm.empty()) d.gcn_norm = ModelDescription::gcn_norms[0];
  if (!d.input_dropout) d.input_dropout = row.drops_inputs && !has_head(d) && !d.pre_linear ? d.dropout : 0;
  return d;
}

}  // namespace

std::string module_name(const std::string& node_type) {
  std::string text;
  for (const char c : node_type) text += c == '.' ? std::string("%2E") : std::string(1, c);
  return text;
}

const ModelType& model_type(const std::string& name) {
  const ModelType* const found = find_type(name);
  require<InputError>(found != nullptr, "there is no model ", name);
  return *found;
}

std::string model_types_where(const std::function<bool(const ModelType&)>& holds) {
  return alternatives(names_where(holds));
}

std::string layers_without_weights(const ModelDescription& description) {
  const ModelType& type = model_type(description.type);
  return description.edge_feats > 0 && type.is_stack() ? "GINEConv" : type.weightless;
}

void require_weights_read(const ModelDescription& description, bool has_weights) {
  if (!has_weights) return;  // a prediction allocates nothing here
  const std::string layers = layers_without_weights(description);
  if (layers.empty()) return;
  const bool typed = model_type(description.type).has_relations;
  throw InputError(concat("a network of type ", description.type, " on a graph with edge weights, which ",
                          layers, " does not read, expected a graph without weights, or a network of type ",
                          model_types_where([&](const ModelType& type) {
                            return type.has_relations == typed && type.weightless.empty();
                          })));
}

const std::vector<std::string>& ModelDescription::types() {
  static const Names names =
      names_where([](const ModelType& type) { return !type.has_relations && !type.is_potential; });
  return names;
}

Index ModelDescription::first_residual() const {
  return to_number<Index>(residual).value_or(0);
}

const std::vector<std::string>& ModelDescription::activations() {
  static const Names names = [] {
    Names all;
    for (const auto& [name, function] : named_activations()) all.push_back(name);
    return all;
  }();
  return names;
}

Activation activation_of(const std::string& name) {
  return std::ranges::find(named_activations(), name, &NamedActivation::first)->second;
}

void require_version(const JsonValue& file) {
  const JsonValue found = file.at(version_key);
  require<InputError>(found.integer() == version, found.place(), " is ", found.integer(), ", expected ",
                      version, ", the version of the format that this library reads");
}

ModelDescription ModelDescription::from_json(const std::string& text, const std::string& where) {
  const JsonValue file = JsonValue::parse(text, where, "the description of a network", where);
  require_version(file);
  ModelDescription d;
  d.type = file.at("type").text();
  require_type(find_type(d.type) != nullptr, d.type, where);
  require_known_keys(file, d.type);
  for (const Key& key : all_keys)
    if (reads(d.type, key.name) && (is_required(key, d.type) || file.has(key.name)))
      key.read(d, file.at(key.name));
  require<InputError>(
      d.heads_of_layers.empty() || !file.has("out_heads"), where,
      ".out_heads is beside a list of heads, expected the list alone, whose last number says it");
  d = d.checked(where);
  if (d.type == "gcn" && !file.has("gcn_norm")) d.gcn_norm.clear();
  return d;
}

std::vector<std::string> ModelDescription::differences(const ModelDescription& other) const {
  const auto written = [](ModelDescription d) {  // with the heads of each layer
    if (reads(d.type, "heads") && d.heads_of_layers.empty()) {
      d.heads_of_layers.assign(static_cast<std::size_t>(d.layers), d.heads);
      if (!has_head(d)) d.heads_of_layers.back() = d.out_heads;
      d.out_heads = 1;
    }
    return Json::parse(d.to_json());
  };
  const Json theirs = written(other), ours = written(*this);
  const std::set<std::string> others{"dropout",   "input_dropout", "attention_dropout", "in_feats",
                                     "out_feats", "inputs",        "gcn_norm"};
  std::vector<std::string> found;
  for (const auto& [key, value] : ours.items())
    if (!others.contains(key) && theirs.contains(key) && theirs[key] != value)
      found.push_back(concat(key, " ", theirs[key].dump(), ", here ", value.dump()));
  return found;
}

std::string ModelDescription::to_json() const {
  const ModelDescription d = checked();
  OrderedJson json;
  json[version_key] = version;
  for (const Key& key : all_keys)
    if (reads(type, key.name) && (key.is_written == nullptr || key.is_written(d)))
      json[key.name] = key.write(d);
  return json.dump();
}

void add_arguments(CollectiveCall& call, const ModelDescription& description) {
  for (const Key& key : all_keys)
    if (reads(description.type, key.name)) call.equal(key.name, key.write(description).dump());
}

ModelDescription ModelDescription::with_widths(Index in, Index out) const {
  ModelDescription same = *this;
  same.in_feats = in;
  same.out_feats = out;
  return same;
}

ModelDescription ModelDescription::checked(const std::string& where) const {
  const ModelType* const row = find_type(type);
  require_type(row != nullptr, type, where);
  const ModelDescription d = with_defaults(*this, *row);
  const auto number = [&](const char* key, Index value, Index low = 1, Index high = most_features) {
    require<InputError>(!reads(type, key) || (low <= value && value <= high), where, ".", key, " is ", value,
                        ", expected a whole number from ", low, " to ", high);
  };
  const auto share = [&](const char* key, double value) {
    require<InputError>(!reads(type, key) || (0 <= value && value < 1), where, ".", key, " is ", value,
                        ", expected a number from 0 on and below 1");
  };
  const auto name = [&](const char* key, const std::string& value, const Names& expected) {
    require<InputError>(!reads(type, key) || has(expected, value), where, ".", key, " is '", value,
                        "', expected ", alternatives(expected));
  };
  number("in_feats", in_feats);
  number("hidden", hidden);
  number("out_feats", out_feats);
  number("layers", layers, row->is_stack() || row->is_potential ? 1 : 0, max_layers);
  number("edge_feats", edge_feats, row->is_stack() ? 0 : 1);
  require<InputError>(edge_feats == 0 || type != "gin" || d.aggregator == "sum", where, ".aggregator is '",
                      d.aggregator, "', expected sum with .edge_feats");
  number("mlp_layers", mlp_layers, 1, max_layers);
  number("num_bases", num_bases, 0);
  number("num_basis", num_basis);
  constexpr Index most_radial = 4096, most_power = 64;
  number("max_l", max_l, 0, 3);
  number("hidden_l", hidden_l, 0, 3);
  number("correlation", correlation, 1, 3);
  number("cutoff_power", cutoff_power, 2, most_power);
  number("radial_hidden", radial_hidden, 1, most_radial);
  number("radial_layers", radial_layers, 1, most_power);
  number("readout_hidden", readout_hidden, 1, most_radial);
  number("zbl_power", zbl_power, 0, most_power);
  name("distance_transform", d.distance_transform, distance_transforms);
  if (row->is_potential) check_potential(d, where);
  check_types(d, where);
  number("heads", heads);
  number("out_heads", out_heads);
  for (const Index each : heads_of_layers) number("heads", each);
  share("dropout", dropout);
  share("input_dropout", *d.input_dropout);
  share("attention_dropout", attention_dropout);
  name("norm", d.norm, norms);
  name("jk", d.jk, jks);
  name("readout", d.readout, readouts);
  number("head_layers", head_layers, 1, max_layers);
  require<InputError>(head_layers == 1 || has_readout(d), where, ".head_layers is ", head_layers,
                      ", expected 1 without a .readout");
  require<InputError>(!has_readout(d) || (row->is_stack() && !row->has_relations), where, ".readout is '",
                      d.readout, "', expected none for a network of type ", type);
  const std::optional<Index> first = to_number<Index>(d.residual);
  require<InputError>(
      has({"none", "identity", "linear"}, d.residual) || (first && 1 <= *first && *first <= layers), where,
      ".residual is '", d.residual,
      "', expected none, identity, linear or the first layer with a residual connection, 1 to ", layers);
  name("activation", d.activation, activations());
  name("aggregator", d.aggregator, row->aggregators);
  name("gcn_norm", d.gcn_norm, gcn_norms);
  name("radial_basis", d.radial_basis, radial_bases);
  name("cutoff_function", d.cutoff_function, cutoff_functions);
  require<InputError>(row->is_stack() || (d.residual == "none" && d.jk == "none" && !pre_linear), where,
                      " has .residual, .jk or .pre_linear, expected none for a network of type ", type);
  if (row->is_stack()) check_layer_sizes(d, where);
  require<InputError>(edge_feats == 0 || reads(type, "edge_feats"), where, ".edge_feats is ", edge_feats,
                      ", expected 0 for a network of type ", type, ", which reads no rows of edges");
  return d;
}

}}  // namespace sar
