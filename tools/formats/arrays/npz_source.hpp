// SPDX-License-Identifier: MIT

/// NumPy's archives as sources of graphs.
#pragma once

#include "array_roles.hpp"
#include "formats/file_source.hpp"
#include "formats/source_options.hpp"
#include "npz_arrays.hpp"

#include <string>

namespace sar::formats {

/// A graph in a .npz file, by the names of its arrays (ArrayRoles). Edges are an array [E, 2] or [2, E] of
/// sources and destinations, or a sparse matrix whose entry (i, j) is the edge i -> j and, unless all are 1,
/// has its weight. Node data are "features" [N, F], dense or sparse, "labels" [N] or one-hot [N, classes],
/// "train_mask", "val_mask" and "test_mask" [N], or [N, S] of S splits, also where the file has [S, N]; edge
/// data "weight" and "features". A role that SourceOptions::fields names has that name.
///
/// What scipy.sparse.save_npz writes (csr, csc, coo) is a graph without node data.
class NpzSource : public FileSource {
 public:
  /// Reads everything, except for arrays that are stored and not deflated: their rows are read when they are
  /// asked for. Collective; throws InputError, the same on every rank.
  NpzSource(const Communicator& comm, const std::string& path, const SourceOptions& options);

 private:
  void read_named(const NpzFile& archive, const SourceOptions& options);
  void read_edge_rows(const NpzFile& archive, const NpzMember& member);
  void read_adjacency(const NpzFile& archive, const CsrArrays& arrays, bool by_column = false);
  void read_pairs(const NpzFile& archive);
  void read_scipy(const NpzFile& archive);
  void set_num_nodes(const NpzFile& archive, const ArrayRoles& roles);
  void add_mask(const NpzFile& archive, const std::string& field, const NamedArray& arrays);
  void add_list(const NpzFile& archive, const std::string& role, const std::string& mask,
                const NamedArray& arrays);
  void add_node_arrays(const NpzFile& archive, const std::string& field, const NamedArray& arrays);
  void add_edge_arrays(const NpzFile& archive, const ArrayRoles& roles, const SourceOptions& options);
  void add_weight(const CsrMatrix& matrix, const std::string& place);
  void note(const std::string& role, const std::string& name, std::span<const Index> shape);

  std::string sized_by_;  // the array that says how many nodes there are
  std::string edges_place_;
};

}  // namespace sar::formats
