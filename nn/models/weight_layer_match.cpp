// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/models/weight_layer_match.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
