// SPDX-License-Identifier: MIT

// The edges are read when the archive is opened: 16 bytes an edge, each rank its share. Deflated arrays are
// unpacked once by rank 0; the others keep their slices of the rows.

#include "npz_source.hpp"

#include "array_roles.hpp"
#include "csr_matrix.hpp"
#include "npz_arrays.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace sar::formats {
namespace {

const char* const mask_names[] = {"train_mask", "val_mask", "test_mask"};

/// The name of the list that becomes a mask.
std::string list_of_mask(std::string mask) {
  return mask.ends_with("_mask") ? mask.replace(mask.size() - 4, 4, "nodes") : "train_nodes";
}

class NpzSource final : public FileSource {
 public:
  NpzSource(const Communicator& comm_of_source, const std::string& path, const SourceOptions& options)
      : FileSource(comm_of_source, "NumPy archive", path) {
    const auto archive = open_npz(comm(), path_);
    add_nodes();
    add_edges();
    if (archive->find("format") != nullptr && archive->find("shape") != nullptr)
      read_scipy(*archive);
    else
      read_named(*archive, options);
    require_ends(edges_place_);
    comm().agree([&] {
      require<InputError>(num_nodes() > 0, path_, ": there are no nodes, expected at least one");
      for (const auto& [field, file] : lists_last(options.node_data)) add_node_file(0, field, file);
      list_fields();
      require_plausible_sizes(path_);
    });
  }

 private:
  void note(const std::string& role, const std::string& name, std::span<const Index> shape) {
    if (notes_.empty()) notes_.push_back(path_ + ":");
    notes_.front() +=
        concat(notes_.front().ends_with(':') ? " " : ", ", role, ": ", name, " ", shape_to_string(shape));
  }

  /// The graph of arrays with the names of published datasets.
  void read_named(const NpzFile& archive, const SourceOptions& options) {
    const ArrayRoles roles(archive, options.fields);
    const auto field = [&](const std::string& role) {  // of this role
      const auto given = options.fields.find(role);
      return given == options.fields.end() ? role : given->second;
    };
    const NamedArray& edges = roles.of.at("edges");
    require<InputError>(
        edges.is_there(), path_, ": there are no edges among the arrays (",
        joined(archive.members(), &NpzMember::name),
        "), expected edges, edge_index, or a matrix adj_data, adj_indices, adj_indptr, adj_shape");
    if (edges.is_sparse())
      read_adjacency(edges.sparse);
    else
      read_edge_rows(*edges.array);
    set_num_nodes(roles);
    for (const char* role : {"features", "labels"}) add_node_arrays(field(role), roles.of.at(role));
    for (const char* mask : mask_names) add_mask(field(mask), roles.of.at(mask));
    for (const char* list : {"train_nodes", "val_nodes", "test_nodes"})
      add_list(list, field(mask_of_list(list)), roles.of.at(list));
    add_edge_array(field("weight"), roles.of.at("weight").array);
    add_edge_array("features", roles.of.at("edge_features").array);
    for (const auto& [key, name] : options.fields) {
      if (!key.starts_with("edge_") || edges_[0].contains(name)) continue;
      const NpzMember* member = archive.find(name);
      require<InputError>(member != nullptr, path_, ": there is no array ", name,
                          ", expected one, which shall be the ", key);
      add_edge_array(name, member);
    }
    if (!roles.others.empty()) notes_.front() += "; ignored: " + joined(roles.others);
  }

  /// Edges in rows or columns of two nodes.
  void read_edge_rows(const NpzMember& member) {
    edges_place_ = member.place();
    const std::vector<Index> shape = shape_of(comm(), member);
    const bool by_column = shape.size() == 2 && shape[0] == 2, by_edge = shape.size() == 2 && shape[1] == 2;
    require<InputError>(by_column || by_edge, edges_place_, ": shape is ", shape_to_string(shape),
                        ", expected (2, number of edges) or (number of edges, 2)");
    const bool is_index = member.name.ends_with("index");
    require<InputError>(
        !by_column || !by_edge || is_index || member.name.ends_with("edges"), edges_place_,
        ": shape is (2, 2), which does not say whether a row or a column is an edge, expected ",
        "the name edges for rows, edge_index for columns");
    const bool rows_are_edges = by_edge && !(by_column && is_index);
    read_edge_array(comm(), member, rows_are_edges, chunks_[0]);
    types_.edge_types[0].num_edges = shape[rows_are_edges ? 0 : 1];
    note(rows_are_edges ? "edges by row" : "edges by column", member.name, shape);
  }

  /// Edges of a sparse matrix: row -> column.
  void read_adjacency(const CsrArrays& arrays, bool by_column = false) {
    const CsrMatrix matrix = read_csr(comm(), arrays, by_column);
    edges_place_ = arrays.indices->place();
    set_matrix(matrix, *arrays.shape, arrays.indptr->name, arrays.name);
    comm().agree([&] {
      const Index begin = matrix.rows.begin(comm().rank());
      Array<Index> rows(matrix.columns.size());
      for (std::size_t i = 0; i + 1 < matrix.offsets.size(); ++i)
        std::fill(rows.begin() + matrix.offsets[i], rows.begin() + matrix.offsets[i + 1],
                  begin + static_cast<Index>(i));
      const Index first = matrix.entries.begin(comm().rank());
      if (by_column)
        chunks_[0].add(first, matrix.columns, rows);
      else
        chunks_[0].add(first, rows, matrix.columns);
    });
  }

  /// The numbers of nodes and edges of a matrix of edges, and its values as weights, unless all are 1.
  /// `place` begins messages about them.
  void set_matrix(const CsrMatrix& matrix, const NpzMember& shape, const std::string& name,
                  const std::string& place) {
    require<InputError>(matrix.num_rows == matrix.num_columns, shape.place(), ": is (", matrix.num_rows, ", ",
                        matrix.num_columns, "), expected a square matrix");
    types_.node_types[0].book = slices_of(matrix.num_rows);
    sized_by_ = shape.name;
    types_.edge_types[0].num_edges = matrix.entries.num_nodes();
    note("edges of a matrix", name, std::array{matrix.num_rows, matrix.num_columns});
    if (matrix.is_all_ones(comm())) return;
    edges_[0].add("weight", matrix.entries, matrix.values, place);
    notes_.front() += ", which has the weights";
  }

  void read_scipy(const NpzFile& archive) {
    std::string format;
    comm().agree([&] { format = text_of(*archive.find("format")); });
    CsrArrays arrays{path_, archive.find("data"), archive.find("indices"), archive.find("indptr"),
                     archive.find("shape")};
    require<InputError>(format == "csr" || format == "csc" || format == "coo", path_,
                        ": the sparse matrix has the format ", format,
                        ", expected csr, csc or coo: scipy.sparse.save_npz(path, matrix.tocsr())");
    if (format == "coo") return read_pairs(archive);
    read_adjacency(arrays, format == "csc");
  }

  /// Edges of a matrix of coordinates: row[k] -> col[k].
  void read_pairs(const NpzFile& archive) {
    std::array<const NpzMember*, 3> lists{};
    std::array<DataArray, 3> columns;
    const NpzMember& shape_array = *archive.find("shape");
    const auto shape = read_shape(comm(), shape_array);
    CsrMatrix matrix{.num_rows = shape[0], .num_columns = shape[1]};
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const char* const name = std::array{"row", "col", "data"}[i];
      lists[i] = archive.find(name);
      require<InputError>(lists[i] != nullptr, path_, ": the sparse matrix has no array ", name,
                          ", expected row, col, data and shape, as scipy.sparse.save_npz writes them");
      if (i == 0) matrix.entries = slices_of(length_of(comm(), *lists[0]));
      columns[i] = read_numbers(comm(), *lists[i], matrix.entries, "as row has it");
    }
    edges_place_ = path_ + ": row and col";
    matrix.values = std::move(columns[2]);
    set_matrix(matrix, shape_array, "row and col", lists[2]->place());
    comm().agree([&] {
      const Index first = matrix.entries.begin(comm().rank());
      chunks_[0].add(first, to_indices(columns[0], lists[0]->place(), first),
                     to_indices(columns[1], lists[1]->place(), first));
    });
  }

  /// The number of nodes: of the matrix, of the array num_nodes, of the rows of node data, or of the edges.
  void set_num_nodes(const ArrayRoles& roles) {
    if (!sized_by_.empty()) return;
    Index count = -1;
    if (const NpzMember* member = roles.of.at("num_nodes").array; member != nullptr) {
      const std::vector<Index> value = read_integers(comm(), *member);
      require<InputError>(value.size() == 1 && value[0] >= 0, member->place(),
                          ": expected one number from 0 on");
      count = value[0];
      sized_by_ = member->name;
    }
    for (const char* role : {"features", "labels", "train_mask", "val_mask", "test_mask"}) {
      const NamedArray& arrays = roles.of.at(role);
      if (count >= 0 || !arrays.is_there()) continue;
      if (arrays.is_sparse() && arrays.sparse.shape != nullptr) {
        count = read_shape(comm(), *arrays.sparse.shape)[0];
        sized_by_ = arrays.sparse.shape->name;
      } else if (arrays.array != nullptr) {
        const std::vector<Index> shape = shape_of(comm(), *arrays.array);
        const bool is_mask = std::string(role).ends_with("mask");
        if (shape.empty() || (is_mask && shape.size() > 1)) continue;  // of splits or of nodes?
        count = shape[0];
        sized_by_ = arrays.array->name;
      }
    }
    if (sized_by_.empty()) {
      count = comm().all_reduce(
          std::max(chunks_[0].count_nodes(&EdgeChunk::src), chunks_[0].count_nodes(&EdgeChunk::dst)),
          ReduceOp::max);
      sized_by_ = "the edges";
    }
    types_.node_types[0].book = slices_of(count);
  }

  void add_node_arrays(const std::string& field, const NamedArray& arrays) {
    if (!arrays.is_there()) return;
    if (!arrays.is_sparse())
      return note(
          field, arrays.array->name,
          add_array_field(comm(), nodes_[0], field, *arrays.array, num_nodes(), "node by " + sized_by_));
    CsrMatrix matrix = read_csr(comm(), arrays.sparse);
    const std::vector<Index> shape{matrix.num_rows, matrix.num_columns};
    require<InputError>(matrix.num_rows == num_nodes(), arrays.sparse.shape->place(), ": is ",
                        shape_to_string(shape), ", expected ", num_nodes(), " rows, one for each node by ",
                        sized_by_);
    DataField known{field, matrix.values.type, {matrix.num_columns}};
    nodes_[0].add(std::move(known), rows_of(std::move(matrix)), arrays.sparse.name);
    note(field + " of a matrix", arrays.sparse.indptr->name, shape);
  }

  /// A mask [N], [N, splits] or [splits, N].
  void add_mask(const std::string& field, const NamedArray& arrays) {
    if (!arrays.is_there()) return;
    const NpzMember& member = arrays.dense("a mask");
    const std::string place = member.place();
    const std::vector<Index> shape = shape_of(comm(), member);
    const bool by_node = !shape.empty() && shape.size() <= 2 && shape.front() == num_nodes();
    const bool by_split = shape.size() == 2 && shape.back() == num_nodes();
    require<InputError>(by_node || by_split, place, ": shape is ", shape_to_string(shape), ", expected (",
                        num_nodes(), ",), (", num_nodes(), ", splits) or (splits, ", num_nodes(),
                        ") for the ", num_nodes(), " nodes by ", sized_by_,
                        shape.size() == 1 ? "; a list of nodes has the name " + list_of_mask(field) : "");
    require<InputError>(!by_node || !by_split, place, ": shape is ", shape_to_string(shape),
                        ", which does not say whether a row is a node or a split, expected masks (",
                        num_nodes(), ",) of one split each");
    add_array_field(comm(), nodes_[0], field, member, num_nodes(), "node by " + sized_by_, by_split);
    note(field, member.name, shape);
  }

  /// A list of the nodes of a mask.
  void add_list(const std::string& role, const std::string& mask, const NamedArray& arrays) {
    if (!arrays.is_there()) return;
    const NpzMember& member = arrays.dense("a list of nodes");
    const std::string place = member.place();
    const std::vector<Index> shape = shape_of(comm(), member);
    require<InputError>(shape.size() == 1 && shape[0] <= num_nodes(), place, ": shape is ",
                        shape_to_string(shape), ", expected a list of at most ", num_nodes(), " nodes");
    const std::vector<Index> nodes = read_integers(comm(), member, num_nodes());
    comm().agree([&] { add_node_list(0, mask, {nodes.begin(), nodes.end()}, place); });
    note(role, member.name, shape);
  }

  /// Weights or other data of the edges.
  void add_edge_array(const std::string& field, const NpzMember* array) {
    if (array != nullptr)
      note(field + " of edges", array->name,
           add_array_field(comm(), edges_[0], field, *array, num_edges(), "edge"));
  }

  std::string sized_by_;  // the array that says how many nodes there are
  std::string edges_place_;
};

}  // namespace

std::unique_ptr<GraphSource> open_npz_source(const Communicator& comm, const std::string& path,
                                             const SourceOptions& options) {
  return std::make_unique<NpzSource>(comm, path, options);
}

}  // namespace sar::formats
