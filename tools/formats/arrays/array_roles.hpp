// SPDX-License-Identifier: MIT

/// Local. What the arrays of an archive mean, by the names that published datasets give them.
#pragma once

#include "csr_matrix.hpp"
#include "formats/packed/npz.hpp"

#include <map>
#include <string>
#include <vector>

namespace sar::formats {

/// An array, or the arrays of a sparse matrix; neither: there is none.
struct NamedArray {
  const NpzMember* array = nullptr;
  CsrArrays sparse = {};

  [[nodiscard]] bool is_there() const noexcept { return array != nullptr || is_sparse(); }
  /// Also where arrays of the matrix are missing: reading it says which.
  [[nodiscard]] bool is_sparse() const noexcept {
    return sparse.indptr != nullptr ||
           (sparse.indices != nullptr && (sparse.data != nullptr || sparse.shape != nullptr));
  }
  /// The array. Throws InputError, which calls it `what`, where the arrays are those of a sparse matrix.
  [[nodiscard]] const NpzMember& dense(const char* what) const;
};

/// The arrays of an archive by their roles. A name counts whatever its capitals, and with a dot or hyphen in
/// the place of an underscore.
///
///     features      node_features, features, feats, x, attr_matrix, attr, ...
///     labels        node_labels, labels, label, y, target, ...
///     edges         edges, edge_index, edge_list; as a matrix: adj, adj_matrix, adjacency
///     weight        edge_weight, weights
///     edge_features edge_attr, edge_features
///     train_mask, val_mask, test_mask   the same or with an s; valid_mask, validation_mask
///     train_nodes, val_nodes, test_nodes   lists: train_idx, train_ids, train_index, idx_train, ...
///     num_nodes
///
/// A matrix is four arrays NAME_data, NAME_indices, NAME_indptr, NAME_shape.
struct ArrayRoles {
  /// `fields` as DatasetOptions::fields: the names that the user gives roles. Throws InputError for a role
  /// that several arrays have, and for a name that no array has.
  ArrayRoles(const NpzFile& archive, const std::map<std::string, std::string>& fields);

  std::map<std::string, NamedArray> of;  ///< of each role, perhaps none
  std::vector<std::string> others;       ///< arrays without a role, in the order of the archive
};

}  // namespace sar::formats
