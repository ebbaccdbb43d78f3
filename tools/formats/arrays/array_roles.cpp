// SPDX-License-Identifier: MIT
#include "array_roles.hpp"

#include "formats/text.hpp"

#include <sar/core/error.hpp>

#include <set>
#include <string_view>

namespace sar::formats {
namespace {

struct ArrayNames {
  const char* role;
  bool is_field;  ///< the role is a key of DatasetOptions::fields
  std::string_view names;
};

constexpr ArrayNames array_names[] = {
    {"features", true,
     "node_features node_feature node_feats node_feat node_attr features feature feats feat x attr_matrix "
     "attr"},
    {"labels", true, "node_labels node_label labels label y targets target"},
    {"edges", false, "edges edge_index edge_list edgelist adj adj_matrix adjacency"},
    {"weight", true, "edge_weight edge_weights weight weights"},
    {"edge_features", false, "edge_attr edge_features edge_feat edge_feats"},
    {"train_mask", true, "train_mask train_masks"},
    {"val_mask", true, "val_mask val_masks valid_mask valid_masks validation_mask validation_masks"},
    {"test_mask", true, "test_mask test_masks"},
    {"train_nodes", false, "train_nodes train_idx train_ids train_index train_indices idx_train"},
    {"val_nodes", false,
     "val_nodes val_idx val_ids val_index val_indices idx_val valid_nodes valid_idx valid_ids valid_index "
     "valid_indices idx_valid"},
    {"test_nodes", false, "test_nodes test_idx test_ids test_index test_indices idx_test"},
    {"num_nodes", false, "num_nodes"}};

std::string plain_name(std::string_view name) {
  std::string plain = lower_case(name);
  for (char& c : plain)
    if (c == '.' || c == '-' || c == ' ') c = '_';
  return plain;
}

/// The array of a name, or the matrix whose arrays begin with it.
NamedArray arrays_named(const NpzFile& archive, std::string_view name) {
  NamedArray found;
  for (const NpzMember& member : archive.members()) {
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
    require<InputError>(*slot == nullptr, archive.path(), ": there are the arrays ",
                        *slot == nullptr ? "" : (*slot)->name, " and ", member.name,
                        ", which have the same meaning, expected one of them");
    *slot = &member;
  }
  found.sparse.name = concat(archive.path(), ": ", name);
  return found;
}

}  // namespace

const NpzMember& NamedArray::dense(const char* what) const {
  require<InputError>(array != nullptr, sparse.name, ": ", what, " is a sparse matrix, expected an array");
  return *array;
}

ArrayRoles::ArrayRoles(const NpzFile& archive, const std::map<std::string, std::string>& fields) {
  std::set<const NpzMember*> known;
  for (const auto& [role, is_field, names] : array_names) {
    NamedArray& of_role = of[role];
    std::vector<std::string> found;
    if (const auto given = fields.find(role); is_field && given != fields.end()) {
      of_role = arrays_named(archive, plain_name(given->second));
      require<InputError>(of_role.is_there(), archive.path(), ": there is no array ", given->second,
                          ", expected one, which shall be the ", role, "; there are ",
                          joined(archive.members(), &NpzMember::name));
    } else {
      for_each_word(names, " ", [&](std::string_view name) {
        const NamedArray arrays = arrays_named(archive, name);
        if (arrays.array != nullptr) found.push_back(arrays.array->name);
        if (arrays.is_sparse()) found.push_back(concat(name, "_indices"));
        if (arrays.is_there()) of_role = arrays;
      });
    }
    require<InputError>(found.size() < 2, archive.path(), ": there are several arrays that may be the ", role,
                        ": ", joined(found), "; expected one of them",
                        is_field ? concat(", or --fields ", role, "=NAME") : "");
    const auto& [array, matrix] = of_role;
    if (of_role.is_there()) known.insert({array, matrix.data, matrix.indices, matrix.indptr, matrix.shape});
  }
  for (const NpzMember& member : archive.members())
    if (!known.contains(&member)) others.push_back(member.name);
}

}  // namespace sar::formats
