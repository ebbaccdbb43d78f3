// SPDX-License-Identifier: MIT
#include "column_names.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cctype>
#include <map>

namespace sar::formats {
namespace {

/// Letters and digits alone, in lower case.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

/// "fromnodeid" -> "from"
std::string without_additions(std::string name) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::string_view end : {"id", "ids", "idx", "index", "node", "nodes", "vertex", "name", "key"})
      if (name.size() > end.size() && name.ends_with(end)) {
        name.erase(name.size() - end.size());
        changed = true;
      }
    for (const std::string_view begin : {"id", "node", "vertex"})
      if (name.size() > begin.size() + 1 && name.starts_with(begin)) {
        name.erase(0, begin.size());
        changed = true;
      }
  }
  return name;
}

/// Names of the two ends of an edge: one of a source, and those of its destinations.
struct EndNames {
  std::string_view source, targets;
  bool is_certain = true;  ///< whatever the order; else only when the source comes first
};
constexpr EndNames end_names[] = {{"source", "target destination dest"},
                                  {"src", "dst dest tgt trg"},
                                  {"from", "to"},
                                  {"user", "item movie product book artist"},
                                  {"customer", "product"},
                                  {"author", "paper"},
                                  {"follower", "followee"},
                                  {"citing", "cited"},
                                  {"sender", "receiver recipient"},
                                  {"subject", "object"},
                                  {"head", "tail", false},
                                  {"h", "t", false},
                                  {"parent", "child", false},
                                  {"start", "end", false},
                                  {"row", "col column", false},
                                  {"u", "v", false},
                                  {"i", "j", false}};

/// A pair of columns that are called source and target.
struct FoundEnds {
  Index source, target;
  bool is_certain;
  bool operator==(const FoundEnds&) const = default;
};

/// Names as they are, and without additions.
struct KnownNames {
  std::vector<std::string> whole, bare;

  explicit KnownNames(const std::vector<std::string_view>& names) {
    for (const std::string_view name : names) {
      whole.push_back(plain(name));
      bare.push_back(without_additions(whole.back()));
    }
  }
  /// The only column of this name: where several are called so with additions, the one that is called so
  /// without. Of several, the first two.
  [[nodiscard]] std::vector<Index> columns(std::string_view name) const {
    for (const auto* list : {&whole, &bare}) {
      std::vector<Index> found;
      for (Index c = 0; c < std::ssize(*list) && found.size() < 2; ++c)
        if ((*list)[c] == name) found.push_back(c);
      if (!found.empty()) return found;
    }
    return {};
  }
};

/// The first columns called "node1" and "node2", or "ida" and "idb": one name with 1 and 2, or a and b.
std::vector<std::pair<Index, Index>> numbered_pairs(const std::vector<std::string>& names) {
  std::map<std::string_view, Index> first_of;
  for (Index c = 0; c < std::ssize(names); ++c) first_of.emplace(names[c], c);
  std::vector<std::pair<Index, Index>> pairs;
  for (const auto& [name, source] : first_of) {
    if (name.empty() || (name.back() != '1' && name.back() != 'a')) continue;
    std::string second(name);
    ++second.back();
    if (const auto target = first_of.find(second); target != first_of.end())
      pairs.emplace_back(source, target->second);
  }
  return pairs;
}

std::vector<FoundEnds> all_ends(const KnownNames& names) {
  std::vector<FoundEnds> found;
  const auto add = [&](const FoundEnds& ends) {
    if (std::ranges::find(found, ends) == found.end()) found.push_back(ends);
  };
  for (const EndNames& ends : end_names)
    for_each_word(ends.targets, " ", [&](std::string_view target) {
      for (const Index s : names.columns(ends.source))
        for (const Index t : names.columns(target)) add({s, t, ends.is_certain});
    });
  for (const auto& [source, target] : numbered_pairs(names.whole)) add({source, target, false});
  return found;
}

/// All columns that are called as one end surely is.
std::vector<Index> single_ends(const KnownNames& names, std::string_view EndNames::*end) {
  std::vector<Index> found;
  for (const EndNames& ends : end_names) {
    if (!ends.is_certain) continue;
    for_each_word(ends.*end, " ", [&](std::string_view name) {
      for (const Index c : names.columns(name))
        if (std::ranges::find(found, c) == found.end()) found.push_back(c);
    });
  }
  return found;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return a == b || (!plain(a).empty() && plain(a) == plain(b));
}

bool is_key_name(std::string_view name) {
  return is_one_of("id node nodeid key nodekey name", plain(name)) || name.ends_with("_id") ||
         name.ends_with("Id") || name.ends_with("ID");
}

bool is_row_number_name(std::string_view name) {
  const std::string letters = plain(name);
  return letters.empty() || letters.starts_with("unnamed") ||
         is_one_of("id index idx edgeid eid edge rowid rownum rownumber rownames nr edgeindex level0",
                   letters);
}

std::pair<Index, Index> find_end_names(const std::vector<std::string_view>& names) {
  const KnownNames known(names);
  std::vector<FoundEnds> found = all_ends(known);
  if (std::ranges::any_of(found, &FoundEnds::is_certain))
    std::erase_if(found, [](const FoundEnds& ends) { return !ends.is_certain; });
  const auto refuse = [&](Index a, Index b, const char* what) {
    throw InputError(concat("columns ", a + 1, " and ", b + 1, " are called ", in_quotes(names[a]), " and ",
                            in_quotes(names[b]), what, ", expected --columns source=NAME,target=NAME"));
  };
  if (found.size() > 1 && !found[0].is_certain) {  // the first columns of "node1,node2,x1,x2"
    std::ranges::sort(found, {}, [](const FoundEnds& ends) { return std::min(ends.source, ends.target); });
    found.erase(found.begin() + 1, found.end());
  }
  if (found.size() > 1) {
    const bool same_source = found[0].source == found[1].source;
    refuse(same_source ? found[0].target : found[0].source, same_source ? found[1].target : found[1].source,
           ", and both may be an end of an edge");
  }
  if (found.size() == 1) {
    const auto [source, target, is_certain] = found[0];
    if (!is_certain && target < source)
      refuse(target, source, ", which does not say for sure which is the source");
    const auto is_row_number = [](std::string_view name) { return is_row_number_name(name); };
    if (!is_certain &&
        (target != source + 1 || !std::all_of(names.begin(), names.begin() + source, is_row_number)))
      refuse(source, target, ", which does not say for sure that they are the two nodes of an edge");
    return {source, target};
  }
  const auto sources = single_ends(known, &EndNames::source),
             targets = single_ends(known, &EndNames::targets);
  if (sources.size() > 1) refuse(sources[0], sources[1], ", which both are names of a source");
  if (targets.size() > 1) refuse(targets[0], targets[1], ", which both are names of a destination");
  return {sources.empty() ? -1 : sources[0], targets.empty() ? -1 : targets[0]};
}

bool name_two_kinds(std::string_view source, std::string_view target) {
  const auto is_kind = [](std::string_view name) {
    return is_one_of("user customer author", without_additions(plain(name)));
  };
  return !plain(source).empty() && !plain(target).empty() && is_kind(source) != is_kind(target);
}

HeaderNames header_names(const std::vector<std::string_view>& fields) {
  const KnownNames known(fields);
  const std::vector<FoundEnds> found = all_ends(known);
  if (std::ranges::any_of(found, &FoundEnds::is_certain)) return HeaderNames::certain;
  for (const std::string_view name : {"source", "src", "target", "dst", "head", "tail", "destination"})
    if (!known.columns(name).empty()) return HeaderNames::certain;
  const bool any = !found.empty() || !single_ends(known, &EndNames::source).empty() ||
                   !single_ends(known, &EndNames::targets).empty();
  return any ? HeaderNames::possible : HeaderNames::none;
}

std::span<const RoleNames> role_names() {
  using Role = ColumnRole;
  static constexpr RoleNames names[] = {
      {Role::source, "source"},
      {Role::target, "target"},
      {Role::key, "key"},
      {Role::weight, "weight", "weight", "weight", "weight weights w wt edgeweight edgeweights"},
      {Role::labels, "labels", "labels", "edge_labels", "label labels edgelabel edgelabels",
       "label labels class target y"},
      {Role::features, "features", "features", "edge_features"},
      {Role::one_hot, "one-hot", "features"},
      {Role::type, "type", "type", "edge_type", "type edgetype"},
      {Role::train_mask, "train_mask", "train_mask", "edge_train_mask", "trainmask edgetrainmask",
       "trainmask"},
      {Role::val_mask, "val_mask", "val_mask", "edge_val_mask", "valmask edgevalmask validmask edgevalidmask",
       "valmask validmask"},
      {Role::test_mask, "test_mask", "test_mask", "edge_test_mask", "testmask edgetestmask", "testmask"},
      {Role::split, "split", "split", "edge_split", "split", "split"},
      {Role::ignored, "ignored"}};
  return names;
}

const RoleNames& names_of(ColumnRole role) {
  return *std::ranges::find(role_names(), role, &RoleNames::role);
}

bool is_usual(const RoleNames& role, std::string_view name) {
  return is_one_of(role.of_nodes, plain(name));
}

ColumnRole usual_role(std::string_view name, bool edge_labels) {
  const std::string letters = plain(name);
  for (const RoleNames& names : role_names())
    if (is_one_of(names.of_edges, letters)) return names.role;
  if (letters.starts_with("feat") || letters.starts_with("edgefeat")) return ColumnRole::features;
  if (edge_labels && (letters == "rating" || letters == "score" || letters == "value"))
    return ColumnRole::labels;
  return ColumnRole::ignored;
}

std::optional<double> to_part(std::string_view field) noexcept {
  for (const auto& [name, part] :
       {std::pair{"train", 0}, {"val", 1}, {"valid", 1}, {"validation", 1}, {"test", 2}})
    if (field == name) return part;
  return to_number(field);
}

}  // namespace sar::formats
