// SPDX-License-Identifier: MIT
#include "array_roles.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace sar::formats {
namespace {

struct ArrayNames {
  const char* role;
  const char* key;  ///< of DatasetOptions::fields; empty: it has none
  std::vector<std::string> names;
};

/// Names of a list of the nodes of a part of the split.
std::vector<std::string> list_names(const std::string& part) {
  std::vector<std::string> names;
  for (const std::string& of : part == "val" ? std::vector<std::string>{"val", "valid"} : std::vector{part}) {
    for (const char* ending : {"_nodes", "_idx", "_ids", "_index", "_indices"}) names.push_back(of + ending);
    names.push_back("idx_" + of);
  }
  return names;
}

const std::vector<ArrayNames>& array_names() {
  static const std::vector<ArrayNames> roles{
      {"features",
       "features",
       {"node_features", "node_feature", "node_feats", "node_feat", "node_attr", "features", "feature",
        "feats", "feat", "x", "attr_matrix", "attr"}},
      {"labels", "labels", {"node_labels", "node_label", "labels", "label", "y", "targets", "target"}},
      {"edges", "", {"edges", "edge_index", "edge_list", "edgelist", "adj", "adj_matrix", "adjacency"}},
      {"weight", "weight", {"edge_weight", "edge_weights", "weight", "weights"}},
      {"edge_features", "", {"edge_attr", "edge_features", "edge_feat", "edge_feats"}},
      {"train_mask", "train_mask", {"train_mask", "train_masks"}},
      {"val_mask",
       "val_mask",
       {"val_mask", "val_masks", "valid_mask", "valid_masks", "validation_mask", "validation_masks"}},
      {"test_mask", "test_mask", {"test_mask", "test_masks"}},
      {"train_nodes", "", list_names("train")},
      {"val_nodes", "", list_names("val")},
      {"test_nodes", "", list_names("test")},
      {"num_nodes", "", {"num_nodes"}}};
  return roles;
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    plain += c == '.' || c == '-' || c == ' '
                 ? '_'
                 : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

}  // namespace

const NpzMember& NamedArray::dense(const char* what) const {
  require<InputError>(array != nullptr, sparse.name, ": ", what, " is a sparse matrix, expected an array");
  return *array;
}

/// The array of a name, or the matrix whose arrays begin with it.
NamedArray ArrayRoles::find(const std::string& name) const {
  NamedArray found;
  for (const NpzMember& member : archive_.members()) {
    const std::string plain = plain_name(member.name);
    if (!plain.starts_with(name)) continue;
    const std::string part = plain.substr(name.size());
    const NpzMember** slot = part.empty()         ? &found.array
                             : part == "_data"    ? &found.sparse.data
                             : part == "_indices" ? &found.sparse.indices
                             : part == "_indptr"  ? &found.sparse.indptr
                             : part == "_shape"   ? &found.sparse.shape
                                                  : nullptr;
    if (slot == nullptr) continue;
    require<InputError>(*slot == nullptr, archive_.path(), ": there are the arrays ",
                        *slot == nullptr ? "" : (*slot)->name, " and ", member.name,
                        ", which have the same meaning, expected one of them");
    *slot = &member;
  }
  found.sparse.name = archive_.path() + ": " + name;
  return found;
}

void ArrayRoles::require_one(const std::string& role, const std::vector<std::string>& found) const {
  const auto known =
      std::ranges::find(array_names(), role, [](const ArrayNames& names) { return std::string(names.role); });
  require<InputError>(found.size() < 2, archive_.path(), ": there are several arrays that may be the ", role,
                      ": ", joined(found), "; expected one of them",
                      *known->key == '\0' ? "" : concat(", or --fields ", known->key, "=NAME"));
}

ArrayRoles::ArrayRoles(const NpzFile& archive, const std::map<std::string, std::string>& fields)
    : archive_(archive) {
  for (const ArrayNames& role : array_names()) {
    NamedArray& of_role = by_role_[role.role];
    if (const auto given = fields.find(role.key); given != fields.end()) {
      of_role = find(plain_name(given->second));
      require<InputError>(of_role.is_there(), archive.path(), ": there is no array ", given->second,
                          ", expected one, which shall be the ", role.key, "; there are ",
                          joined(archive.members(), &NpzMember::name));
      continue;
    }
    std::vector<std::string> found;
    for (const std::string& name : role.names) {
      const NamedArray arrays = find(name);
      if (arrays.array != nullptr) found.emplace_back(arrays.array->name);
      if (arrays.is_sparse()) found.emplace_back(concat(name, "_indices"));
      if (arrays.is_there()) of_role = arrays;
    }
    require_one(role.role, found);
  }
}

std::vector<std::string> ArrayRoles::others() const {
  std::set<std::string> known;
  for (const auto& [role, arrays] : by_role_)
    for (const NpzMember* member :
         {arrays.array, arrays.sparse.data, arrays.sparse.indices, arrays.sparse.indptr, arrays.sparse.shape})
      if (member != nullptr && arrays.is_there()) known.insert(member->name);
  std::vector<std::string> names;
  for (const NpzMember& member : archive_.members())
    if (!known.contains(member.name)) names.push_back(member.name);
  return names;
}

}  // namespace sar::formats
