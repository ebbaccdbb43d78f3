// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/models/weight_names.hpp>

#include <fnmatch.h>
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
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

/// A tensor's name in another library and in the model, both without the name of the layer. A `from` with a
/// final dot is the beginning of a name.
struct WeightSpelling {
  std::string_view from, to;
  WeightLayout layout = WeightLayout::same;
};

/// The names that are recognized; the first one that fits is taken.
constexpr WeightSpelling weight_spellings[] = {
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

/// The name of a layer, or of a list of numbered layers, in other programs and in the model.
struct LayerSpelling {
  std::string_view from, to;
};

/// The names of layers that are taken before others of the same shapes.
constexpr LayerSpelling layer_spellings[] = {
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

/// A tensor that the library has once for both ends of an edge, in files under one name or under two. Of two,
/// `from` is then an equal copy of the tensor that is taken for `to`; a single one, `from`, is also taken for
/// `to`, unless the file has another tensor of that end with other values.
struct SharedSpelling {
  std::string_view from, to;
  std::string_view saved;        ///< name of `to` in a file that has both ends
  std::string_view beside = {};  ///< tensor that the model's layer must have
};

/// The names of shared tensors, for what weight_spellings do not match.
constexpr SharedSpelling shared_spellings[] = {
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

/// Returns whether a tensor of the shape `file` can be converted to one of the shape `model`.
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

/// Returns whether a name begins with a part of a layer that the libraries call so: "lin_l" of
/// "lin_l.weight".
bool begins_with_part(const std::string& name) {
  static const std::set<std::string> parts = [] {
    std::set<std::string> heads;
    for (const WeightSpelling& each : weight_spellings)
      for (const std::string_view side : {each.from, each.to})
        if (const std::size_t dot = side.find('.'); dot != std::string_view::npos && side != "module.")
          heads.emplace(side.substr(0, dot));
    return heads;
  }();
  const std::size_t dot = name.find('.');
  return dot != std::string::npos && parts.contains(name.substr(0, dot));
}

/// The tensors of a layer.
struct WeightLayer {
  std::string prefix;  ///< "convs.1"; empty: the network is a single layer
  std::string stem;    ///< "convs" of "convs.1", "conv" of "conv1"
  Index number = -1;
  bool is_renamed = false;  ///< by the caller's WeightNames
  /// Keyed by the rest of the name after the prefix and its dot. Parts of a relation begin with
  /// "mods.RELATION.", where RELATION is the name of the relation, or "SOURCE__NAME__DESTINATION" if the
  /// layer has several of that name.
  std::map<std::string, const NamedShape*> leaves = {};

  /// Returns "convs" for the stem "encoder.convs".
  [[nodiscard]] std::string list() const { return stem.substr(stem.rfind('.') + 1); }
  [[nodiscard]] bool is_norm() const {
    return leaves.contains("running_mean") || leaves.contains("module.running_mean");
  }
};

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

/// Groups tensors into layers, in the order of their first tensors. The prefix of a layer ends with the first
/// component that is a number or ends with one, before a part that the libraries name ("lin_l"), or else
/// before the last component. Relations may have the names of DGL's HeteroGraphConv, of PyG's HeteroConv and
/// of its to_hetero(). A layer that is nothing but lin.weight and lin.bias is a linear layer called `lin`.
/// The layers refer to `tensors`.
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

/// Makes layers lins.N of the residual connections inside layers N of attention: res.weight of PyG,
/// res_fc.weight and res_fc.bias of DGL.
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

/// Names the other bias of each residual connection, lins.N.bias, and of its convolution, where both
/// have the same shape: a file may have only one of them, because their sum counts.
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
std::string part_of(std::string_view name) {
  return std::string(name.substr(0, name.find('.') + 1));
}

Index size_of(const NamedShape& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), Index{1}, std::multiplies<>());
}

struct LayerMatch {
  std::vector<WeightLink> links;
  std::vector<const NamedShape*> file, model;  ///< without a partner
  std::vector<std::string> missing;            ///< counters of the model that the file may lack
  std::vector<const NamedShape*> zeros;        ///< biases of the model that the file may lack, beside another
  std::string difference;  ///< two tensors of the file that should be equal, for messages; may be empty

  [[nodiscard]] bool is_complete() const { return file.empty() && model.empty(); }
};

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
    return std::ranges::any_of(weight_spellings, [&](const WeightSpelling& each) {
      const bool fits = each.from.ends_with('.') ? rest.starts_with(each.from) : rest == each.from;
      return fits && take(tensor, concat(head, each.to, rest.substr(each.from.size())), each.layout, head);
    });
  }

  /// Calls use(row, target) for the rows of shared tensors that fit, until it returns true.
  template <class Use>
  bool any_shared(const std::string& head, const Use& use) {
    return std::ranges::any_of(shared_spellings, [&](const SharedSpelling& row) {
      return (row.beside.empty() || model_.leaves.contains(concat(head, row.beside))) && use(row);
    });
  }

  /// A tensor for an end of the edges, where the model has one for both ends: the only one in the file, or an
  /// equal copy of the one that was taken.
  bool link_copy(const std::string& leaf, const NamedShape& tensor) {
    const auto [head, rest] = split_leaf(leaf);
    return any_shared(head, [&](const SharedSpelling& row) {
      const auto target = model_.leaves.find(concat(head, row.to));
      if (rest != row.from || target == model_.leaves.end() || tensor.shape != target->second->shape)
        return false;
      if (take(tensor, target->first, WeightLayout::same, head)) return true;
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
      const auto source = file_.leaves.find(concat(head, row.from));
      if (rest != row.to || source == file_.leaves.end() || source->second->shape != tensor.shape ||
          !has_same_values(head, part_of(row.saved), part_of(row.from)))
        return false;
      const std::string& name = source->second->name;
      link(*source->second, tensor, WeightLayout::same,
           concat(name.substr(0, name.size() - row.from.size()), row.saved));
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

/// Links the tensors by the names of the model, of DGL and of PyTorch Geometric.
LayerMatch match_layer(const WeightLayer& file, const WeightLayer& model, SameValues same_values) {
  if (file.is_norm() != model.is_norm()) {
    LayerMatch none;
    for (const auto& [leaf, tensor] : file.leaves) none.file.push_back(tensor);
    for (const auto& [leaf, tensor] : model.leaves) none.model.push_back(tensor);
    return none;
  }
  return LayerMatcher(file, model, same_values).run();
}

/// The tensors of a file under the names that matching uses.
struct KnownNames {
  std::vector<NamedShape> tensors;
  std::vector<std::string> originals;  ///< the names in the file
  std::vector<bool> renamed;           ///< by the caller

  [[nodiscard]] std::map<std::string, std::string> originals_by_name(const std::string& place) const {
    std::map<std::string, std::string> result;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto [before, is_new] = result.emplace(tensors[i].name, originals[i]);
      require<InputError>(is_new, place, ": '", before->second, "' and '", originals[i],
                          "' are both called '", tensors[i].name, "' now, expected names that differ");
    }
    return result;
  }
};

/// Returns the tensors whose names match none of the patterns. `where` and `purpose` are for the error of a
/// pattern that matches no name.
std::vector<NamedShape> without(const std::vector<NamedShape>& tensors,
                                const std::vector<std::string>& patterns, const std::string& where,
                                const char* purpose) {
  std::vector<NamedShape> left;
  std::set<std::string> used;
  for (const NamedShape& tensor : tensors) {
    bool found = false;
    for (const std::string& pattern : patterns) {
      if (fnmatch(pattern.c_str(), tensor.name.c_str(), 0) != 0) continue;
      used.insert(pattern);
      found = true;
    }
    if (!found) left.push_back(tensor);
  }
  for (const std::string& pattern : patterns)
    require<InputError>(used.contains(pattern), where, " matches '", pattern, "', expected one to ", purpose);
  return left;
}

/// Applies the caller's changes.
KnownNames changed(const std::vector<NamedShape>& file, const WeightNames& names, const std::string& place) {
  KnownNames known;
  known.tensors = without(file, names.drop, place + ": no name in the file", "ignore");
  std::set<std::string> used;
  for (NamedShape& tensor : known.tensors) {
    known.originals.push_back(tensor.name);
    std::string& name = tensor.name;
    if (name.starts_with(names.strip_prefix)) name.erase(0, names.strip_prefix.size());
    const std::string *from = nullptr, *to = nullptr;
    for (const auto& [begin, end] : names.rename)
      if ((name == begin || name.starts_with(begin + ".")) &&
          (from == nullptr || begin.size() > from->size()))
        from = &begin, to = &end;
    known.renamed.push_back(from != nullptr);
    if (from == nullptr) continue;
    used.insert(*from);
    name = *to + name.substr(from->size());
  }
  for (const auto& [from, to] : names.rename)
    require<InputError>(used.contains(from), place, ": no name in the file is or begins with '", from,
                        "', expected one to rename to '", to, "'");
  return known;
}

/// Removes what wrappers of a model add to names that the caller did not change.
void strip_wrappers(KnownNames& known) {
  std::vector<std::string*> names;
  for (std::size_t i = 0; i < known.tensors.size(); ++i)
    if (!known.renamed[i]) names.push_back(&known.tensors[i].name);
  const std::string compiled = "_orig_mod.";
  for (std::string* name : names)
    for (std::size_t at;
         (at = name->find(compiled)) != std::string::npos && (at == 0 || (*name)[at - 1] == '.');)
      name->erase(at, compiled.size());
  for (bool found = !names.empty(); found;) {
    found = false;
    for (const std::string wrapper : {"module.", "model.", "net.", "gnn."}) {
      if (!std::ranges::all_of(names, [&](const std::string* name) { return name->starts_with(wrapper); }))
        continue;
      for (std::string* name : names) name->erase(0, wrapper.size());
      found = true;
    }
  }
}

/// Marks the layers that the caller's new names name.
void mark_renamed(std::vector<WeightLayer>& layers, const WeightNames& names) {
  const auto begins = [](const std::string& name, const std::string& with) {
    return name == with || name.starts_with(with + ".");
  };
  for (WeightLayer& layer : layers)
    layer.is_renamed = std::ranges::any_of(names.rename, [&](const auto& pair) {
      return begins(pair.second, layer.prefix) || begins(layer.prefix, pair.second);
    });
}

/// Matches the layers of a model with those of a file.
class Matcher {
 public:
  Matcher(std::vector<WeightLayer> file, const std::vector<WeightLayer>& model,
          const std::map<std::string, std::string>& originals, const std::string& place,
          SameValues same_values)
      : file_(std::move(file)), originals_(originals), place_(place), same_values_(same_values) {
    std::ranges::stable_sort(file_, {},
                             [](const WeightLayer& each) { return std::pair(each.stem, each.number); });
    std::vector<const WeightLayer*> unnamed, left;
    for (const WeightLayer& layer : model) {  // layers that the caller named first
      const auto same = std::ranges::find(file_, layer.prefix, &WeightLayer::prefix);
      if (same == file_.end() || !same->is_renamed || !take(same, layer)) unnamed.push_back(&layer);
    }
    const bool has_linears = std::ranges::any_of(model, [](const WeightLayer& layer) {
      return layer.list() == "lins" || layer.list() == "lin" || layer.list() == "lin_in";
    });
    for (const WeightLayer* layer : unnamed)  // a linear layer may have the shapes of a convolution
      if (!has_linears || !take_spelled(*layer)) left.push_back(layer);
    for (const WeightLayer* layer : left) {
      const auto found = find(*layer);
      if (found == file_.end() || !take(found, *layer)) model_.push_back(layer);
    }
    take_copies();
    for (const WeightLayer* layer : model_) take_part(*layer);
  }

  std::vector<WeightLink> links;
  std::vector<std::string> missing;
  std::vector<const NamedShape*> zeros;
  std::vector<WeightLink> partial;       ///< of layers that do not fit, for messages
  std::vector<std::string> differences;  ///< of tensors that should be equal, for messages

 private:
  using Place = std::vector<WeightLayer>::iterator;

  bool take(Place from, const WeightLayer& to) {
    LayerMatch match = match_layer(*from, to, same_values_);
    if (!match.is_complete()) return false;
    links.insert(links.end(), match.links.begin(), match.links.end());
    missing.insert(missing.end(), match.missing.begin(), match.missing.end());
    zeros.insert(zeros.end(), match.zeros.begin(), match.zeros.end());
    taken_.push_back(*from);
    file_.erase(from);
    return true;
  }

  /// Takes the first layer of the file that fits and is called as the layer, or by another name for it.
  bool take_spelled(const WeightLayer& layer) {
    const auto take_of = [&](std::string_view list) {
      const auto found = std::ranges::find_if(file_, [&](const WeightLayer& each) {
        return each.list() == list && (each.number < 0) == (layer.number < 0) && !each.is_renamed &&
               match_layer(each, layer, same_values_).is_complete();
      });
      return found != file_.end() && take(found, layer);
    };
    return take_of(layer.list()) || std::ranges::any_of(layer_spellings, [&](const LayerSpelling& each) {
             return each.to == layer.list() && take_of(each.from);
           });
  }

  /// Returns the first layer of the file that fits.
  Place find(const WeightLayer& layer) {
    Place first = file_.end();
    for (Place each = file_.begin(); each != file_.end(); ++each) {
      if (each->is_renamed || !match_layer(*each, layer, same_values_).is_complete()) continue;
      if (first == file_.end()) first = each;
      if (first->stem == each->stem || is_copy(*each, first->stem)) continue;
      throw InputError(concat(place_, ": '", layer.prefix, "' of the model could be '", original(*first),
                              "' or '", original(*each), "' of the file, expected a rename (--rename ",
                              original(*first), "=", layer.prefix, " or ", original(*each), "=", layer.prefix,
                              ") or names to ignore (--drop-weights '", original(*each), ".*')"));
    }
    return first;
  }

  /// Returns whether a layer of this stem has the same names and values.
  bool is_copy(const WeightLayer& layer, const std::string& stem) {
    const auto is_same = [&](const WeightLayer& other) {
      return other.stem == stem &&
             std::ranges::equal(layer.leaves, other.leaves, [&](const auto& a, const auto& b) {
               return a.first == b.first && same_values_(a.second->name, b.second->name);
             });
    };
    return std::ranges::any_of(file_, is_same) || std::ranges::any_of(taken_, is_same);
  }

  /// Links the layers that the file has again, as modules of their own or in another list: nn1.0.weight
  /// besides conv1.nn.0.weight.
  void take_copies() {
    std::erase_if(file_, [&](const WeightLayer& layer) {
      return std::ranges::any_of(taken_, [&](const WeightLayer& of) { return take_copy(layer, of); });
    });
  }

  bool take_copy(const WeightLayer& layer, const WeightLayer& of) {
    if (layer.stem == of.stem) return false;
    std::vector<WeightLink> copies;
    for (const auto& [leaf, tensor] : layer.leaves) {
      const auto same =
          std::ranges::find_if(of.leaves, [&](const auto& other) {
            return (other.first == leaf || other.first.ends_with("." + leaf)) &&
                   same_values_(other.second->name, tensor->name);
          });
      if (same == of.leaves.end()) return false;
      copies.push_back(*std::ranges::find(links, same->second->name, &WeightLink::file));
      copies.back().file = copies.back().saved = tensor->name;
    }
    links.insert(links.end(), copies.begin(), copies.end());
    return true;
  }

  /// Links as much of a layer as possible, so that a message names only what does not fit.
  void take_part(const WeightLayer& layer) {
    LayerMatch best;
    Place of = file_.end();
    for (Place each = file_.begin(); each != file_.end(); ++each) {
      if (each->is_renamed && each->prefix != layer.prefix) continue;
      LayerMatch match = match_layer(*each, layer, same_values_);
      if (match.links.size() <= best.links.size()) continue;
      best = std::move(match);
      of = each;
    }
    if (of == file_.end()) return;
    partial.insert(partial.end(), best.links.begin(), best.links.end());
    if (!best.difference.empty()) differences.push_back(best.difference);
    file_.erase(of);
  }

  /// Returns the beginning of the layer's names in the file.
  [[nodiscard]] std::string original(const WeightLayer& layer) const {
    const std::string& name = layer.leaves.begin()->second->name;
    const std::string& before = originals_.at(name);
    const std::string rest = name.substr(layer.prefix.size());
    return before.ends_with(rest) ? before.substr(0, before.size() - rest.size()) : layer.prefix;
  }

  std::vector<WeightLayer> file_, taken_ = {};
  std::vector<const WeightLayer*> model_ = {};  ///< without a layer of the file
  const std::map<std::string, std::string>& originals_;
  const std::string& place_;
  SameValues same_values_;
};

/// Returns, for messages: 'a' [2, 3], 'b' [3] and 4 more
std::string outline(const std::vector<NamedShape>& tensors, const std::set<std::string>& linked,
                    const std::map<std::string, std::string>& originals = {}) {
  constexpr int most = 10;
  std::string text;
  int count = 0;
  for (const NamedShape& tensor : tensors) {
    if (linked.contains(tensor.name) || ++count > most) continue;
    const std::string& name = originals.empty() ? tensor.name : originals.at(tensor.name);
    text += concat(text.empty() ? "'" : ", '", name, "' [", joined(tensor.shape), "]");
  }
  return count > most ? concat(text, " and ", count - most, " more") : text;
}

/// Throws the error for tensors without a partner.
void require_partners(const KnownNames& known, const std::vector<NamedShape>& model, const Matcher& matcher,
                      const std::map<std::string, std::string>& originals, const std::string& place) {
  std::set<std::string> of_file, of_model(matcher.missing.begin(), matcher.missing.end());
  for (const NamedShape* zero : matcher.zeros) of_model.insert(zero->name);
  for (const auto* links : {&matcher.links, &matcher.partial})
    for (const WeightLink& link : *links) {
      of_file.insert(link.file);
      of_model.insert(link.model);
    }
  const std::string alone = outline(known.tensors, of_file, originals), missing = outline(model, of_model);
  std::string differences;
  for (const std::string& each : matcher.differences) differences += each + ", ";
  require<InputError>(
      alone.empty() && missing.empty() && matcher.partial.empty(), place, ": ", differences,
      alone.empty() ? "" : "the model has no place for " + alone + " of the file",
      alone.empty() || missing.empty() ? "" : ", and ",
      missing.empty() ? "" : "the file has nothing for " + missing + " of the model",
      ", expected the names and shapes of the model, or names to change (--rename FROM=TO, --strip-prefix "
      "TEXT), "
      "to ignore (--drop-weights GLOB) or to leave at their initial values (--missing-weights GLOB)");
}

/// Returns the original name with the end that makes `saved` of `file`.
std::string with_end_of(const WeightLink& link, const std::string& original) {
  const auto at = std::ranges::mismatch(link.file, link.saved).in1 - link.file.begin();
  const std::string end = link.file.substr(static_cast<std::size_t>(at));
  if (!original.ends_with(end)) return link.saved;
  return original.substr(0, original.size() - end.size()) + link.saved.substr(static_cast<std::size_t>(at));
}

}  // namespace

bool is_dropped(const std::string& name, const WeightNames& names) {
  return std::ranges::any_of(
      names.drop, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

WeightMatch match_weights(const std::vector<NamedShape>& file, const std::vector<NamedShape>& model,
                          const WeightNames& names, const std::string& place, SameValues same_values) {
  std::vector<NamedShape> wanted =
      without(model, names.missing, place + ": no name of the model", "leave at its initial value");
  mark_added_biases(wanted);
  KnownNames known = changed(file, names, place);
  std::map<std::string, std::string> originals = known.originals_by_name(place);
  WeightMatch match;
  const bool has_names_of_model =
      wanted.size() == known.tensors.size() &&
      std::ranges::all_of(wanted, [&](const NamedShape& each) { return originals.contains(each.name); });
  if (has_names_of_model) {
    for (const NamedShape& each : known.tensors)
      match.links.push_back({.file = each.name, .model = each.name, .saved = each.name});
  } else {
    strip_wrappers(known);
    originals = known.originals_by_name(place);
    std::vector<WeightLayer> layers = layers_of(known.tensors);
    const std::vector<WeightLayer> of_model = layers_of(wanted);
    if (std::ranges::find(of_model, "lins", &WeightLayer::list) != of_model.end()) split_residuals(layers);
    mark_renamed(layers, names);
    const auto same = [&](const std::string& a, const std::string& b) {
      return same_values(originals.at(a), originals.at(b));
    };
    Matcher matcher(std::move(layers), of_model, originals, place, same);
    require_partners(known, wanted, matcher, originals, place);
    match = {std::move(matcher.links), std::move(matcher.missing)};
    for (const NamedShape* zero : matcher.zeros) match.zeros.push_back({zero->name, zero->other_bias});
  }
  constexpr std::string_view bias = ".bias";
  const bool drops_bias = std::ranges::any_of(file, [&](const NamedShape& each) {
    return each.name.ends_with(bias) && is_dropped(each.name, names);
  });
  for (const NamedShape& each : model) {
    if (std::ranges::find(wanted, each.name, &NamedShape::name) != wanted.end()) continue;
    match.missing.push_back(each.name);
    if (drops_bias || !each.name.ends_with(bias)) continue;
    const std::string weight = each.name.substr(0, each.name.size() - bias.size()) + ".weight";
    if (std::ranges::find(match.links, weight, &WeightLink::model) != match.links.end())
      match.absent_biases.push_back(each.name);
  }
  for (WeightLink& link : match.links) {
    const std::string& original = originals.at(link.file);
    link.saved = link.saved == link.file ? original : with_end_of(link, original);
    link.file = original;
  }
  return match;
}
}  // namespace SAR_PRECISION
}  // namespace sar
