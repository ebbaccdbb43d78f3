// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/models/weight_names.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

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
    const auto take_of = [&](const std::string& list) {
      const auto found = std::ranges::find_if(file_, [&](const WeightLayer& each) {
        return each.list() == list && (each.number < 0) == (layer.number < 0) && !each.is_renamed &&
               match_layer(each, layer, same_values_).is_complete();
      });
      return found != file_.end() && take(found, layer);
    };
    return take_of(layer.list()) || std::ranges::any_of(layer_spellings(), [&](const LayerSpelling& each) {
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
  for (const NamedShape& each : model)
    if (std::ranges::find(wanted, each.name, &NamedShape::name) == wanted.end())
      match.missing.push_back(each.name);
  for (WeightLink& link : match.links) {
    const std::string& original = originals.at(link.file);
    link.saved = link.saved == link.file ? original : with_end_of(link, original);
    link.file = original;
  }
  return match;
}

}}  // namespace sar
