// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/models/weight_layers.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
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

const std::vector<WeightSpelling>& weight_spellings() {
  static const std::vector<WeightSpelling> all{
      // SAGEConv: PyG from 1.6 on; DGL before 1.0 (one bias)
      {"lin_l.weight", "fc_neigh.weight"},
      {"lin_l.bias", "fc_self.bias"},
      {"lin_r.weight", "fc_self.weight"},
      {"bias", "fc_self.bias"},
      // GCNConv: PyG from 2.0 on; PyG 1.x has the names and layouts of DGL's GraphConv
      {"lin.weight", "weight", WeightLayout::transposed},
      // GATConv: PyG from 2.4 on (lin), 2.0 to 2.3 (lin_src, lin_dst: shared), 1.6 and 1.7 (lin_l, lin_r:
      // shared)
      {"lin.weight", "fc.weight"},
      {"att_src", "attn_l"},
      {"att_dst", "attn_r"},
      {"att_l", "attn_l"},
      {"att_r", "attn_r"},
      {"res.weight", "res_fc.weight"},
      {"bias", "bias", WeightLayout::one_head},
      {"bias", "res_fc.bias"},
      {"bias", "res_fc.bias", WeightLayout::one_head},
      // GATConv between nodes of two types: PyG from 2.0 on, then 1.6 and 1.7
      {"lin_src.weight", "fc_src.weight"},
      {"lin_dst.weight", "fc_dst.weight"},
      // GATv2Conv: PyG from 1.7 on
      {"lin_l.weight", "fc_src.weight"},
      {"lin_l.bias", "fc_src.bias"},
      {"lin_r.weight", "fc_dst.weight"},
      {"lin_r.bias", "fc_dst.bias"},
      {"att", "attn"},
      {"bias", "fc_src.bias", WeightLayout::added},
      // GINConv around PyG's Sequential, PyG's MLP and the MLP of DGL's example
      {"nn.lins.0.", "apply_func.0."},
      {"nn.norms.0.module.", "apply_func.1."},
      {"nn.norms.0.", "apply_func.1."},
      {"nn.lins.1.", "apply_func.3."},
      {"nn.", "apply_func."},
      {"apply_func.linears.0.", "apply_func.0."},
      {"apply_func.batch_norm.", "apply_func.1."},
      {"apply_func.linears.1.", "apply_func.3."},
      // PyG's RGCNConv
      {"weight", "linear_r.W"},
      {"comp", "linear_r.coeff"},
      {"root", "loop_weight"},
      {"bias", "h_bias"},
      // PyG's BatchNorm
      {"module.", ""},
  };
  return all;
}

const std::vector<LayerSpelling>& layer_spellings() {
  static const std::vector<LayerSpelling> all{
      // networks of arXiv 2406.08993, for medium and large graphs
      {"local_convs", "layers"},
      {"local_convs", "convs"},
      {"pred_local", "lin"},
      {"pred_linear", "lin"},
      {"node_encoder", "lin_in"},
      {"lns", "norms"},
      // examples of PyG and DGL
      {"convs", "layers"},
      {"conv", "layers"},
      {"conv", "convs"},
      {"norms", "bns"},
      {"linear", "lins"},
      {"linears", "lins"},
      {"lin", "lins"},
      {"input_linear", "lin_in"},
      {"output_linear", "lin"},
      {"head", "lin"},
      {"classifier", "lin"},
  };
  return all;
}

const std::vector<SharedSpelling>& shared_spellings() {
  static const std::vector<SharedSpelling> all{
      // GATConv with one matrix for both ends: PyG 2.0 to 2.3, PyG 1.6 and 1.7, DGL's names of two types
      {"lin_src.weight", "fc.weight", "lin_src.weight"},
      {"lin_dst.weight", "fc.weight", "lin_dst.weight"},
      {"lin_l.weight", "fc.weight", "lin_l.weight"},
      {"lin_r.weight", "fc.weight", "lin_r.weight"},
      {"fc_src.weight", "fc.weight", "fc_src.weight"},
      {"fc_dst.weight", "fc.weight", "fc_dst.weight"},
      // GATv2Conv with shared weights: PyG, then DGL
      {"lin_l.weight", "fc_dst.weight", "lin_r.weight", "attn"},
      {"lin_l.bias", "fc_dst.bias", "lin_r.bias", "attn"},
      {"lin_r.weight", "fc_src.weight", "lin_l.weight", "attn"},
      {"lin_r.bias", "fc_src.bias", "lin_l.bias", "attn"},
      {"fc_src.weight", "fc_dst.weight", "fc_dst.weight", "attn"},
      {"fc_src.bias", "fc_dst.bias", "fc_dst.bias", "attn"},
      {"fc_dst.weight", "fc_src.weight", "fc_src.weight", "attn"},
      {"fc_dst.bias", "fc_src.bias", "fc_src.bias", "attn"},
      {"fc.weight", "fc_src.weight", "fc_src.weight", "attn"},
      {"fc.bias", "fc_src.bias", "fc_src.bias", "attn"},
      {"fc.weight", "fc_dst.weight", "fc_dst.weight", "attn"},
      {"fc.bias", "fc_dst.bias", "fc_dst.bias", "attn"},
  };
  return all;
}

bool has_layout(WeightLayout layout, const std::vector<Index>& file, const std::vector<Index>& model) {
  const auto is_single = [](const auto& shape) {
    return std::ranges::all_of(shape, [](Index n) { return n == 1; });
  };
  switch (layout) {
    case WeightLayout::same:
      return file == model || (file.size() + model.size() == 1 && is_single(file) && is_single(model));
    case WeightLayout::transposed:
      return file.size() == 2 && model.size() == 2 && file[0] == model[1] && file[1] == model[0];
    case WeightLayout::one_head:
    case WeightLayout::added:
      return file.size() == 1 && model.size() == 1 && file[0] > 0 && model[0] % file[0] == 0;
  }
  return false;
}

bool begins_with_part(const std::string& name) {
  static const std::set<std::string> parts = [] {
    std::set<std::string> heads;
    for (const WeightSpelling& each : weight_spellings())
      for (const std::string& side : {each.from, each.to})
        if (const std::size_t dot = side.find('.'); dot != std::string::npos && side != "module.")
          heads.insert(side.substr(0, dot));
    return heads;
  }();
  const std::size_t dot = name.find('.');
  return dot != std::string::npos && parts.contains(name.substr(0, dot));
}

namespace {

/// A leaf as the relation that it belongs to, "mods.RELATION." or empty, and the rest.
struct SplitLeaf {
  std::string head, rest;
};

SplitLeaf split_leaf(const std::string& leaf) {
  if (!leaf.starts_with("mods.")) return {"", leaf};
  const std::size_t end = leaf.find('.', 5) + 1;
  return {leaf.substr(0, end), leaf.substr(end)};
}

/// Returns "lin_l." for "lin_l.weight".
std::string part_of(const std::string& name) {
  return name.substr(0, name.find('.') + 1);
}

Index size_of(const NamedShape& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), Index{1}, std::multiplies<>());
}

class LayerMatcher {
 public:
  LayerMatcher(const WeightLayer& file, const WeightLayer& model, SameValues same_values)
      : file_(file), model_(model), same_values_(same_values), model_left_(model.leaves) {}

  LayerMatch run() {
    for (const auto& [leaf, tensor] : file_.leaves)
      if (!link_by_name(leaf, *tensor)) file_left_[leaf] = tensor;
    std::erase_if(file_left_, [&](const auto& each) { return link_copy(each.first, *each.second); });
    std::erase_if(model_left_, [&](const auto& each) {
      return link_other_end(each.first, *each.second) || may_be_missing(*each.second);
    });
    for (const auto& [leaf, tensor] : file_left_) match_.file.push_back(tensor);
    for (const auto& [leaf, tensor] : model_left_) match_.model.push_back(tensor);
    return std::move(match_);
  }

 private:
  void link(const NamedShape& from, const NamedShape& to, WeightLayout layout, std::string saved) {
    match_.links.push_back({from.name, to.name, layout, size_of(from), std::move(saved)});
  }

  bool take(const NamedShape& from, const std::string& to, WeightLayout layout, const std::string& head) {
    const bool adds = layout == WeightLayout::added;
    const auto& targets = adds ? model_.leaves : model_left_;
    const auto target = targets.find(to);
    if (target == targets.end() || (adds && !model_.leaves.contains(head + "fc_dst.bias")) ||
        !has_layout(layout, from.shape, target->second->shape))
      return false;
    link(from, *target->second, layout, from.name);
    if (!adds) model_left_.erase(to);
    return true;
  }

  bool link_by_name(const std::string& leaf, const NamedShape& tensor) {
    const auto [head, rest] = split_leaf(leaf);
    if (take(tensor, leaf, WeightLayout::same, head)) return true;
    return std::ranges::any_of(weight_spellings(), [&](const WeightSpelling& each) {
      const bool fits = each.from.ends_with('.') ? rest.starts_with(each.from) : rest == each.from;
      return fits && take(tensor, head + each.to + rest.substr(each.from.size()), each.layout, head);
    });
  }

  /// Calls use(row, target) for the rows of shared tensors that fit, until it returns true.
  template <class Use>
  bool any_shared(const std::string& head, const Use& use) {
    return std::ranges::any_of(shared_spellings(), [&](const SharedSpelling& row) {
      return (row.beside.empty() || model_.leaves.contains(head + row.beside)) && use(row);
    });
  }

  /// A tensor for an end of the edges, where the model has one for both ends: the only one in the file, or an
  /// equal copy of the one that was taken.
  bool link_copy(const std::string& leaf, const NamedShape& tensor) {
    const auto [head, rest] = split_leaf(leaf);
    return any_shared(head, [&](const SharedSpelling& row) {
      const auto target = model_.leaves.find(head + row.to);
      if (rest != row.from || target == model_.leaves.end() || tensor.shape != target->second->shape)
        return false;
      if (take(tensor, head + row.to, WeightLayout::same, head)) return true;
      const auto taken = std::ranges::find(match_.links, target->second->name, &WeightLink::model);
      if (taken == match_.links.end()) return false;
      if (!same_values_(taken->file, tensor.name)) {
        match_.difference = concat("'", taken->file, "' and '", tensor.name,
                                   "' of the file differ, and the model has one tensor for both, '",
                                   target->second->name, "'");
        return false;
      }
      link(tensor, *target->second, WeightLayout::same, tensor.name);
      return true;
    });
  }

  /// Returns whether all that the file has of the end `part` it has with the same values of the other end.
  bool has_same_values(const std::string& head, const std::string& part, const std::string& other) {
    return std::ranges::all_of(file_.leaves, [&](const auto& each) {
      if (!each.first.starts_with(head + part)) return true;
      const auto twin = file_.leaves.find(head + other + each.first.substr(head.size() + part.size()));
      return twin != file_.leaves.end() && same_values_(twin->second->name, each.second->name);
    });
  }

  /// A tensor of the model for an end of the edges, where the file has one for both ends.
  bool link_other_end(const std::string& leaf, const NamedShape& tensor) {
    const auto [head, rest] = split_leaf(leaf);
    return any_shared(head, [&](const SharedSpelling& row) {
      const auto source = file_.leaves.find(head + row.from);
      if (rest != row.to || source == file_.leaves.end() || source->second->shape != tensor.shape ||
          !has_same_values(head, part_of(row.saved), part_of(row.from)))
        return false;
      const std::string& name = source->second->name;
      link(*source->second, tensor, WeightLayout::same,
           name.substr(0, name.size() - row.from.size()) + row.saved);
      return true;
    });
  }

  bool may_be_missing(const NamedShape& tensor) {
    if (!tensor.other_bias.empty()) {
      match_.zeros.push_back(&tensor);
      return true;
    }
    if (!tensor.name.ends_with("num_batches_tracked")) return false;
    match_.missing.push_back(tensor.name);
    return true;
  }

  const WeightLayer &file_, &model_;
  SameValues same_values_;
  std::map<std::string, const NamedShape*> file_left_ = {}, model_left_;
  LayerMatch match_ = {};
};

}  // namespace

LayerMatch match_layer(const WeightLayer& file, const WeightLayer& model, SameValues same_values) {
  if (file.is_norm() != model.is_norm()) {
    LayerMatch none;
    for (const auto& [leaf, tensor] : file.leaves) none.file.push_back(tensor);
    for (const auto& [leaf, tensor] : model.leaves) none.model.push_back(tensor);
    return none;
  }
  return LayerMatcher(file, model, same_values).run();
}
}}  // namespace sar
