// SPDX-License-Identifier: MIT
#include <sar/nn/models/weight_layers.hpp>
#include <sar/nn/models/weight_spelling.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr const char* digits = "0123456789";

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of(digits) == std::string::npos;
}

/// Returns the parts of a text between separators.
std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != std::string::npos;
       begin = end + separator.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// A name of a part of a relation.
struct RelationLeaf {
  std::vector<std::string> key;  ///< the relation, or source, relation and destination
  std::string rest;
};

/// Replaces what PyG replaces in names of types.
std::string plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == ' ' || c == '-' || c == ':' || c == '.'; }, '_');
  return text;
}

/// Splits "mods.('user', 'rates', 'item').weight", "mods.rates.weight", "convs.<user___rates___item>.weight",
/// "convs.user__rates__item.weight" and "user__rates__item.weight".
std::optional<RelationLeaf> relation_of(const std::string& leaf) {
  const bool is_dgl = leaf.starts_with("mods.");
  const std::string text = is_dgl ? leaf.substr(5) : leaf.starts_with("convs.") ? leaf.substr(6) : leaf;
  const auto cut = [&](std::size_t opening, const std::string& end,
                       const std::string& separator) -> std::optional<RelationLeaf> {
    const std::size_t at = text.find(end);
    if (at == std::string::npos) return std::nullopt;
    RelationLeaf found{split(text.substr(opening, at - opening), separator), text.substr(at + end.size())};
    if (is_dgl && found.key.size() == 1) found.key = split(found.key[0], ":");
    for (std::string& part : found.key) part = plain(std::move(part));
    if (found.key.size() != 3 && !(is_dgl && found.key.size() == 1)) return std::nullopt;
    return found;
  };
  if (text.starts_with("('")) return cut(2, "').", "', '");
  if (text.starts_with("<")) return cut(1, ">.", "___");
  return cut(0, ".", "__");
}

/// Returns the layer of a name: "convs.1" for "convs.1.lin.weight", "conv1" for "conv1.weight".
WeightLayer layer_of(const std::string& name) {
  std::size_t begin = 0;
  for (std::size_t end; (end = name.find('.', begin)) != std::string::npos; begin = end + 1) {
    if (const std::string rest = name.substr(begin); begins_with_part(rest) || relation_of(rest)) break;
    const std::string component = name.substr(begin, end - begin);
    const std::size_t stem = component.find_last_not_of(digits) + 1;
    if (!is_number(component.substr(stem))) continue;
    const std::size_t before =
        stem > 0 || begin == 0 ? begin + stem : begin - 1;  // without the dot of "convs.1"
    return {.prefix = name.substr(0, end),
            .stem = name.substr(0, before),
            .number = std::stoll(component.substr(stem))};
  }
  const std::string prefix = name.substr(0, begin > 0 ? begin - 1 : 0);
  return {.prefix = prefix, .stem = prefix};
}

/// Names a linear layer called lin, whose tensors look like a part of a layer without a name.
void name_linear(WeightLayer& layer) {
  const auto weight = layer.leaves.find("lin.weight"), bias = layer.leaves.find("lin.bias");
  if (layer.leaves.size() != 2 || weight == layer.leaves.end() || bias == layer.leaves.end()) return;
  layer.leaves = {{"weight", weight->second}, {"bias", bias->second}};
  layer.prefix += layer.prefix.empty() ? "lin" : ".lin";
  layer.stem = layer.prefix;
  layer.number = -1;
}

/// Gives the parts of relations the names that WeightLayer describes.
void name_relations(WeightLayer& layer) {
  std::map<std::string, std::set<std::vector<std::string>>> keys;  // by the name of the relation
  const auto name_of = [](const RelationLeaf& of) { return of.key[of.key.size() / 2]; };
  for (const auto& [leaf, tensor] : layer.leaves)
    if (const auto of = relation_of(leaf)) keys[name_of(*of)].insert(of->key);
  if (keys.empty()) return;
  std::map<std::string, const NamedShape*> named;
  for (const auto& [leaf, tensor] : layer.leaves) {
    const auto of = relation_of(leaf);
    if (!of) {
      named[leaf] = tensor;
      continue;
    }
    std::string name = name_of(*of);
    if (keys[name].size() > 1 && of->key.size() == 3) name = of->key[0] + "__" + name + "__" + of->key[2];
    named["mods." + name + "." + of->rest] = tensor;
  }
  if (named.size() == layer.leaves.size()) layer.leaves = std::move(named);
}

}  // namespace

std::vector<WeightLayer> layers_of(const std::vector<NamedShape>& tensors) {
  std::vector<WeightLayer> layers;
  std::map<std::string, std::size_t> places;  // keyed by prefix
  for (const NamedShape& tensor : tensors) {
    const WeightLayer layer = layer_of(tensor.name);
    const auto [place, is_new] = places.emplace(layer.prefix, layers.size());
    if (is_new) layers.push_back(layer);
    layers[place->second].leaves[tensor.name.substr(layer.prefix.empty() ? 0 : layer.prefix.size() + 1)] =
        &tensor;
  }
  for (WeightLayer& layer : layers) {
    name_relations(layer);
    name_linear(layer);
  }
  return layers;
}

void split_residuals(std::vector<WeightLayer>& layers) {
  std::vector<WeightLayer> linears;
  for (WeightLayer& layer : layers)
    for (const std::string part : {"res.", "res_fc."}) {
      if (!layer.leaves.contains(part + "weight") || layer.number < 0) continue;
      WeightLayer& linear = linears.emplace_back(WeightLayer{
          .prefix = "lins." + std::to_string(layer.number), .stem = "lins", .number = layer.number});
      for (const std::string leaf : {"weight", "bias"})
        if (const auto taken = layer.leaves.extract(part + leaf)) linear.leaves[leaf] = taken.mapped();
    }
  layers.insert(layers.end(), linears.begin(), linears.end());
}

void mark_added_biases(std::vector<NamedShape>& model) {
  for (NamedShape& linear : model) {
    const std::size_t at = linear.name.rfind("lins."), end = linear.name.rfind(".bias");
    if (at == std::string::npos || end == std::string::npos || (at > 0 && linear.name[at - 1] != '.'))
      continue;
    const std::string before = linear.name.substr(0, at), number = linear.name.substr(at + 5, end - at - 5);
    for (const std::string list : {"layers.", "convs."})
      for (const std::string bias : {".bias", ".fc_self.bias", ".apply_func.3.bias", ".h_bias"}) {
        const auto other = std::ranges::find(model, before + list + number + bias, &NamedShape::name);
        if (other == model.end() || other->shape != linear.shape) continue;
        linear.other_bias = other->name;
        other->other_bias = linear.name;
      }
  }
}
}}  // namespace sar
