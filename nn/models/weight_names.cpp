#include <sar/core/error.hpp>
#include <sar/nn/models/weight_names.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A tensor's name in another program and in the model. A `from` with a final dot is a prefix.
struct Spelling {
  std::string from, to;
  WeightLayout layout = WeightLayout::same;
};

const std::vector<Spelling>& spellings() {
  static const std::vector<Spelling> all{
      // PyG's SAGEConv, then older releases of DGL
      {"lin_l.weight", "fc_neigh.weight"},
      {"lin_l.bias", "fc_self.bias"},
      {"lin_r.weight", "fc_self.weight"},
      {"bias", "fc_self.bias"},
      // PyG's GCNConv
      {"lin.weight", "weight", WeightLayout::transposed},
      // PyG's GATConv
      {"lin.weight", "fc.weight"},
      {"lin_src.weight", "fc.weight"},
      {"att_src", "attn_l"},
      {"att_dst", "attn_r"},
      {"res.weight", "res_fc.weight"},
      {"bias", "bias", WeightLayout::one_head},
      {"bias", "res_fc.bias"},
      {"bias", "res_fc.bias", WeightLayout::one_head},
      // PyG's GATv2Conv
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

/// The tensors of a layer.
struct Layer {
  std::string prefix;  ///< "convs.1"
  std::string stem;    ///< "convs" of "convs.1", "conv" of "conv1"
  Index number = -1;
  bool is_renamed = false;                            ///< by the caller's WeightNames
  std::map<std::string, const NamedShape*> leaves{};  ///< keyed by the rest of the name after the prefix and
                                                      ///< its dot

  [[nodiscard]] bool is_norm() const {
    return leaves.contains("running_mean") || leaves.contains("module.running_mean");
  }
};

constexpr const char* digits = "0123456789";

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of(digits) == std::string::npos;
}

/// Returns the layer of a name: "convs.1" for "convs.1.lin.weight", "conv1" for "conv1.weight".
Layer layer_of(const std::string& name) {
  const std::size_t first = name.find('.');
  if (first == std::string::npos) return {.prefix = "", .stem = ""};
  std::string head = name.substr(0, first);
  const std::size_t second = name.find('.', first + 1);
  const std::string index = name.substr(first + 1, second - first - 1);
  if (second != std::string::npos && is_number(index))
    return {.prefix = name.substr(0, second), .stem = head, .number = std::stoll(index)};
  const std::size_t stem = head.find_last_not_of(digits) + 1;
  const std::string end = head.substr(stem);
  return {.prefix = head, .stem = head.substr(0, stem), .number = is_number(end) ? std::stoll(end) : -1};
}

/// Groups tensors into layers, in the order of their first tensors.
std::vector<Layer> layers_of(const std::vector<NamedShape>& tensors) {
  std::vector<Layer> layers;
  std::map<std::string, std::size_t> places;  // keyed by prefix
  for (const NamedShape& tensor : tensors) {
    const Layer layer = layer_of(tensor.name);
    const auto [place, is_new] = places.emplace(layer.prefix, layers.size());
    if (is_new) layers.push_back(layer);
    layers[place->second].leaves[tensor.name.substr(layer.prefix.empty() ? 0 : layer.prefix.size() + 1)] =
        &tensor;
  }
  return layers;
}

/// Returns the links between the tensors of two layers, or nothing if one tensor has no partner.
std::optional<std::vector<WeightLink>> links_between(const Layer& file, const Layer& model) {
  if (file.is_norm() != model.is_norm()) return std::nullopt;
  std::vector<WeightLink> links;
  std::map<std::string, const NamedShape*> left = model.leaves;
  const auto take = [&](const NamedShape& from, const std::string& to, WeightLayout layout) {
    const bool adds = layout == WeightLayout::added;
    const auto& targets = adds ? model.leaves : left;
    const auto target = targets.find(to);
    if (target == targets.end() || (adds && !model.leaves.contains("fc_dst.bias")) ||
        !has_layout(layout, from.shape, target->second->shape))
      return false;
    const Index size = std::accumulate(from.shape.begin(), from.shape.end(), Index{1}, std::multiplies<>());
    links.push_back({from.name, target->second->name, layout, size});
    if (!adds) left.erase(to);
    return true;
  };
  for (const auto& [leaf, tensor] : file.leaves) {
    bool taken = take(*tensor, leaf, WeightLayout::same);
    for (const Spelling& each : spellings()) {
      if (taken) break;
      if (each.from.ends_with('.') ? leaf.starts_with(each.from) : leaf == each.from)
        taken = take(*tensor, each.to + leaf.substr(each.from.size()), each.layout);
    }
    if (!taken) return std::nullopt;
  }
  if (!left.empty()) return std::nullopt;
  return links;
}

std::string outline(const NamedShape& tensor) {
  return concat("'", tensor.name, "' [", joined(tensor.shape), "]");
}

/// Returns, for messages: 'a' [2, 3], 'b' [3] and 4 more
std::string outline(const std::vector<NamedShape>& tensors, const std::vector<WeightLink>& links,
                    std::string WeightLink::*side) {
  constexpr int most = 10;
  std::set<std::string> linked;
  for (const WeightLink& link : links) linked.insert(link.*side);
  std::string text;
  int count = 0;
  for (const NamedShape& tensor : tensors)
    if (!linked.contains(tensor.name) && ++count <= most)
      text += (text.empty() ? "" : ", ") + outline(tensor);
  return count > most ? concat(text, " and ", count - most, " more") : text;
}

/// Returns the file's names after the caller's changes and without prefixes of wrappers, in the order of the
/// file.
std::vector<NamedShape> renamed(const std::vector<NamedShape>& file, const WeightNames& names,
                                const std::string& place) {
  std::vector<NamedShape> result = file;
  std::map<std::string, int> uses;
  for (NamedShape& tensor : result) {
    std::string& name = tensor.name;
    if (name.starts_with(names.strip_prefix)) name.erase(0, names.strip_prefix.size());
    const std::string *from = nullptr, *to = nullptr;
    for (const auto& [begin, end] : names.rename)
      if ((name == begin || name.starts_with(begin + ".")) &&
          (from == nullptr || begin.size() > from->size()))
        from = &begin, to = &end;
    if (from == nullptr) continue;
    ++uses[*from];
    name = *to + name.substr(from->size());
  }
  for (const auto& [from, to] : names.rename)
    require<InputError>(uses[from] > 0, place, ": no name in the file is or begins with '", from,
                        "', expected one to rename to '", to, "'");
  std::map<std::string, std::string> seen;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const auto [before, is_new] = seen.emplace(result[i].name, file[i].name);
    require<InputError>(is_new, place, ": '", before->second, "' and '", file[i].name, "' are both called '",
                        result[i].name, "' now, expected names that differ");
  }
  return result;
}

/// Removes prefixes that wrappers of a model add to all names.
void strip_wrappers(std::vector<NamedShape>& tensors) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string wrapper : {"module.", "_orig_mod.", "model.", "net.", "gnn."}) {
      const auto has = [&](const NamedShape& tensor) { return tensor.name.starts_with(wrapper); };
      if (tensors.empty() || !std::ranges::all_of(tensors, has)) continue;
      for (NamedShape& tensor : tensors) tensor.name.erase(0, wrapper.size());
      found = true;
    }
  }
}

/// Matches the layers of the model with those of the file. Links keep the tensor names of `file`.
std::vector<WeightLink> match_layers(std::vector<Layer> file, const std::vector<Layer>& model,
                                     const std::string& place) {
  std::ranges::stable_sort(file, {}, [](const Layer& layer) { return std::pair(layer.stem, layer.number); });
  std::vector<WeightLink> links;
  const auto take = [&](std::vector<Layer>::iterator from, const Layer& to) {
    auto found = *links_between(*from, to);
    links.insert(links.end(), found.begin(), found.end());
    file.erase(from);
  };
  std::vector<const Layer*> left;
  for (const Layer& layer : model) {  // layers that the caller named first
    const auto same = std::ranges::find(file, layer.prefix, &Layer::prefix);
    if (same != file.end() && same->is_renamed && links_between(*same, layer))
      take(same, layer);
    else
      left.push_back(&layer);
  }
  for (const Layer* layer : left) {
    auto first = file.end();
    for (auto each = file.begin(); each != file.end(); ++each) {
      if (each->is_renamed || !links_between(*each, *layer)) continue;
      require<InputError>(first == file.end() || first->stem == each->stem, place, ": '", layer->prefix,
                          "' of the model could be '", first == file.end() ? "" : first->prefix, "' or '",
                          each->prefix, "' of the file, expected a rename of '", each->prefix, "' to '",
                          layer->prefix, "' or another");
      if (first == file.end()) first = each;
    }
    if (first != file.end()) take(first, *layer);
  }
  return links;
}

}  // namespace

std::vector<WeightLink> match_weights(const std::vector<NamedShape>& file,
                                      const std::vector<NamedShape>& model, const WeightNames& names,
                                      const std::string& place) {
  std::vector<NamedShape> known = renamed(file, names, place);
  std::map<std::string, std::string> original;  // keyed by the changed name
  std::set<std::string> of_model;
  for (const NamedShape& each : model) of_model.insert(each.name);
  std::vector<WeightLink> links;
  if (std::ranges::any_of(known, [&](const NamedShape& each) { return !of_model.contains(each.name); })) {
    if (names.rename.empty()) strip_wrappers(known);
    std::vector<Layer> layers = layers_of(known);
    for (Layer& layer : layers)
      layer.is_renamed = std::ranges::any_of(names.rename, [&](const auto& pair) {
        return pair.second == layer.prefix || pair.second.starts_with(layer.prefix + ".");
      });
    links = match_layers(std::move(layers), layers_of(model), place);
  } else {
    for (const NamedShape& each : known) links.push_back({each.name, each.name});
  }
  const std::string alone = outline(known, links, &WeightLink::file),
                    missing = outline(model, links, &WeightLink::model);
  require<InputError>(alone.empty() && missing.empty(), place, ": ",
                      alone.empty() ? "" : "the model has no place for " + alone + " of the file",
                      alone.empty() || missing.empty() ? "" : ", and ",
                      missing.empty() ? "" : "the file has nothing for " + missing + " of the model",
                      ", expected the names and shapes of the model, or a rename and a prefix to strip");
  for (std::size_t i = 0; i < file.size(); ++i) original[known[i].name] = file[i].name;
  for (WeightLink& link : links) link.file = original.at(link.file);
  return links;
}

}}  // namespace sar
