// SPDX-License-Identifier: MIT

// The edges are read when the archive is opened: 16 bytes an edge, each rank its share. Deflated arrays are
// unpacked once by rank 0; the others keep their slices of the rows.

#include "npz_source.hpp"

#include "csr_matrix.hpp"

#include "formats/field_data.hpp"
#include "formats/packed/npz.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

const char* const mask_names[] = {"train_mask", "val_mask", "test_mask"};

/// The name of the field of a role.
std::string field_name(const SourceOptions& options, const std::string& role) {
  const auto given = options.fields.find(role);
  return given == options.fields.end() ? role : given->second;
}

/// The name of the list that becomes a mask.
std::string list_of_mask(std::string mask) {
  return mask.ends_with("_mask") ? mask.replace(mask.size() - 4, 4, "nodes") : "train_nodes";
}

/// The number of nodes that edges name. Collective.
Index count_ends(const Communicator& comm, EdgeChunks& chunks) {
  Index count = 0;
  for (const EdgeChunk& chunk : chunks.chunks())
    for (const auto* ends : {&chunk.src, &chunk.dst})
      for (const Index node : *ends) count = std::max(count, node + 1);
  return comm.all_reduce(count, ReduceOp::max);
}

}  // namespace

NpzSource::NpzSource(const Communicator& comm_of_source, const std::string& path,
                     const SourceOptions& options)
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

void NpzSource::note(const std::string& role, const std::string& name, std::span<const Index> shape) {
  if (notes_.empty()) notes_.push_back(path_ + ":");
  notes_.front() +=
      concat(notes_.front().ends_with(':') ? " " : ", ", role, ": ", name, " ", shape_to_string(shape));
}

/// The graph of arrays with the names of published datasets.
void NpzSource::read_named(const NpzFile& archive, const SourceOptions& options) {
  const ArrayRoles roles(archive, options.fields);
  const NamedArray& edges = roles.of("edges");
  require<InputError>(
      edges.is_there(), path_, ": there are no edges among the arrays (",
      joined(archive.members(), &NpzMember::name),
      "), expected edges, edge_index, or a matrix adj_data, adj_indices, adj_indptr, adj_shape");
  if (edges.is_sparse())
    read_adjacency(archive, edges.sparse);
  else
    read_edge_rows(archive, *edges.array);
  set_num_nodes(archive, roles);
  add_node_arrays(archive, field_name(options, "features"), roles.of("features"));
  add_node_arrays(archive, field_name(options, "labels"), roles.of("labels"));
  for (const char* mask : mask_names) add_mask(archive, field_name(options, mask), roles.of(mask));
  for (const char* list : {"train_nodes", "val_nodes", "test_nodes"})
    add_list(archive, list, field_name(options, mask_of_list(list)), roles.of(list));
  add_edge_arrays(archive, roles, options);
  if (const std::vector<std::string> others = roles.others(); !others.empty())
    notes_.front() += "; ignored: " + joined(others);
}

/// Edges in rows or columns of two nodes.
void NpzSource::read_edge_rows(const NpzFile& archive, const NpzMember& member) {
  edges_place_ = archive.place_of(member);
  const std::vector<Index> shape = header_of(comm(), archive, member).shape;
  const bool by_column = shape.size() == 2 && shape[0] == 2, by_edge = shape.size() == 2 && shape[1] == 2;
  require<InputError>(by_column || by_edge, edges_place_, ": shape is ", shape_to_string(shape),
                      ", expected (2, number of edges) or (number of edges, 2)");
  const bool is_index = member.name.ends_with("index");
  require<InputError>(!by_column || !by_edge || is_index || member.name.ends_with("edges"), edges_place_,
                      ": shape is (2, 2), which does not say whether a row or a column is an edge, expected ",
                      "the name edges for rows, edge_index for columns");
  const bool rows_are_edges = by_edge && !(by_column && is_index);
  read_edge_array(comm(), archive, member, rows_are_edges, chunks_[0]);
  types_.edge_types[0].num_edges = shape[rows_are_edges ? 0 : 1];
  note(rows_are_edges ? "edges by row" : "edges by column", member.name, shape);
}

/// Edges of a sparse matrix: row -> column.
void NpzSource::read_adjacency(const NpzFile& archive, const CsrArrays& arrays, bool by_column) {
  CsrMatrix matrix = read_csr(comm(), archive, arrays, by_column);
  edges_place_ = archive.place_of(*arrays.indices);
  require<InputError>(matrix.num_rows == matrix.num_columns, archive.place_of(*arrays.shape), ": is (",
                      matrix.num_rows, ", ", matrix.num_columns, "), expected a square matrix");
  types_.node_types[0].book = slices_of(matrix.num_rows);
  sized_by_ = arrays.shape->name;
  types_.edge_types[0].num_edges = matrix.entries.num_nodes();
  note("edges of a matrix", arrays.indptr->name, std::vector<Index>{matrix.num_rows, matrix.num_columns});
  add_weight(matrix, arrays.name);
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

/// The values of a matrix of edges, unless all are 1.
void NpzSource::add_weight(const CsrMatrix& matrix, const std::string& place) {
  if (matrix.is_all_ones(comm())) return;
  edges_[0].add("weight", matrix.entries, matrix.values, place);
  notes_.front() += ", which has the weights";
}

void NpzSource::read_scipy(const NpzFile& archive) {
  std::string format;
  comm().agree([&] { format = text_of(archive, *archive.find("format")); });
  CsrArrays arrays{path_, archive.find("data"), archive.find("indices"), archive.find("indptr"),
                   archive.find("shape")};
  require<InputError>(format == "csr" || format == "csc" || format == "coo", path_,
                      ": the sparse matrix has the format ", format,
                      ", expected csr, csc or coo: scipy.sparse.save_npz(path, matrix.tocsr())");
  if (format == "coo") return read_pairs(archive);
  read_adjacency(archive, arrays, format == "csc");
}

/// Edges of a matrix of coordinates: row[k] -> col[k].
void NpzSource::read_pairs(const NpzFile& archive) {
  std::array<const NpzMember*, 3> lists{};
  std::array<DataArray, 3> columns;
  const NpzMember& shape_of = *archive.find("shape");
  const auto shape = read_shape(comm(), archive, shape_of);
  require<InputError>(shape[0] == shape[1], archive.place_of(shape_of), ": is (", shape[0], ", ", shape[1],
                      "), expected a square matrix");
  CsrMatrix matrix{.num_rows = shape[0], .num_columns = shape[1]};
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const char* const name = std::array{"row", "col", "data"}[i];
    lists[i] = archive.find(name);
    require<InputError>(lists[i] != nullptr, path_, ": the sparse matrix has no array ", name,
                        ", expected row, col, data and shape, as scipy.sparse.save_npz writes them");
    if (i == 0) matrix.entries = slices_of(length_of(comm(), archive, *lists[0]));
    columns[i] = read_numbers(comm(), archive, *lists[i], matrix.entries, "as row has it");
  }
  edges_place_ = path_ + ": row and col";
  types_.node_types[0].book = slices_of(shape[0]);
  types_.edge_types[0].num_edges = matrix.entries.num_nodes();
  note("edges of a matrix", "row and col", shape);
  matrix.values = std::move(columns[2]);
  add_weight(matrix, archive.place_of(*lists[2]));
  comm().agree([&] {
    const Index first = matrix.entries.begin(comm().rank());
    chunks_[0].add(first, to_indices(columns[0], archive.place_of(*lists[0]), first),
                   to_indices(columns[1], archive.place_of(*lists[1]), first));
  });
}

/// The number of nodes: of the matrix, of the array num_nodes, of the rows of node data, or of the edges.
void NpzSource::set_num_nodes(const NpzFile& archive, const ArrayRoles& roles) {
  if (!sized_by_.empty()) return;
  Index count = -1;
  if (const NpzMember* member = roles.of("num_nodes").array; member != nullptr) {
    comm().agree([&] { require_numbers(archive, *member); });
    const std::vector<Index> value = read_integers(comm(), archive, *member);
    require<InputError>(value.size() == 1 && value[0] >= 0, archive.place_of(*member),
                        ": expected one number from 0 on");
    count = value[0];
    sized_by_ = member->name;
  }
  for (const char* role : {"features", "labels", "train_mask", "val_mask", "test_mask"}) {
    const NamedArray& arrays = roles.of(role);
    if (count >= 0 || !arrays.is_there()) continue;
    if (arrays.is_sparse() && arrays.sparse.shape != nullptr) {
      count = read_shape(comm(), archive, *arrays.sparse.shape)[0];
      sized_by_ = arrays.sparse.shape->name;
    } else if (arrays.array != nullptr) {
      const std::vector<Index> shape = header_of(comm(), archive, *arrays.array).shape;
      const bool is_mask = std::string(role).ends_with("mask");
      if (shape.empty() || (is_mask && shape.size() > 1)) continue;  // of splits or of nodes?
      count = shape[0];
      sized_by_ = arrays.array->name;
    }
  }
  if (sized_by_.empty()) {
    count = count_ends(comm(), chunks_[0]);
    sized_by_ = "the edges";
  }
  types_.node_types[0].book = slices_of(count);
}

void NpzSource::add_node_arrays(const NpzFile& archive, const std::string& field, const NamedArray& arrays) {
  if (!arrays.is_there()) return;
  if (!arrays.is_sparse()) {
    add_array_field(comm(), nodes_[0], field, archive, *arrays.array, num_nodes(), "node by " + sized_by_);
    return note(field, arrays.array->name, header_of(comm(), archive, *arrays.array).shape);
  }
  CsrMatrix matrix = read_csr(comm(), archive, arrays.sparse);
  const std::vector<Index> shape{matrix.num_rows, matrix.num_columns};
  require<InputError>(matrix.num_rows == num_nodes(), archive.place_of(*arrays.sparse.shape), ": is ",
                      shape_to_string(shape), ", expected ", num_nodes(), " rows, one for each node by ",
                      sized_by_);
  DataField known{field, matrix.values.type, {matrix.num_columns}};
  nodes_[0].add(std::move(known), rows_of(std::move(matrix)), arrays.sparse.name);
  note(field + " of a matrix", arrays.sparse.indptr->name, shape);
}

/// A mask [N], [N, splits] or [splits, N].
void NpzSource::add_mask(const NpzFile& archive, const std::string& field, const NamedArray& arrays) {
  if (!arrays.is_there()) return;
  const NpzMember& member = arrays.dense("a mask");
  const std::string place = archive.place_of(member);
  const std::vector<Index> shape = header_of(comm(), archive, member).shape;
  const bool by_node = !shape.empty() && shape.size() <= 2 && shape.front() == num_nodes();
  const bool by_split = shape.size() == 2 && shape.back() == num_nodes();
  require<InputError>(by_node || by_split, place, ": shape is ", shape_to_string(shape), ", expected (",
                      num_nodes(), ",), (", num_nodes(), ", splits) or (splits, ", num_nodes(), ") for the ",
                      num_nodes(), " nodes by ", sized_by_,
                      shape.size() == 1 ? "; a list of nodes has the name " + list_of_mask(field) : "");
  require<InputError>(!by_node || !by_split, place, ": shape is ", shape_to_string(shape),
                      ", which does not say whether a row is a node or a split, expected masks (",
                      num_nodes(), ",) of one split each");
  add_array_field(comm(), nodes_[0], field, archive, member, num_nodes(), "node by " + sized_by_, by_split);
  note(field, member.name, shape);
}

/// A list of the nodes of a mask.
void NpzSource::add_list(const NpzFile& archive, const std::string& role, const std::string& mask,
                         const NamedArray& arrays) {
  if (!arrays.is_there()) return;
  const NpzMember& member = arrays.dense("a list of nodes");
  const std::string place = archive.place_of(member);
  const std::vector<Index> shape = header_of(comm(), archive, member).shape;
  require<InputError>(shape.size() == 1 && shape[0] <= num_nodes(), place, ": shape is ",
                      shape_to_string(shape), ", expected a list of at most ", num_nodes(), " nodes");
  const std::vector<Index> nodes = read_integers(comm(), archive, member, num_nodes());
  comm().agree([&] { add_node_list(0, mask, {nodes.begin(), nodes.end()}, place); });
  note(role, member.name, shape);
}

/// Weights and other data of the edges.
void NpzSource::add_edge_arrays(const NpzFile& archive, const ArrayRoles& roles,
                                const SourceOptions& options) {
  const auto add = [&](const std::string& field, const NamedArray& arrays) {
    if (arrays.array == nullptr) return;
    add_array_field(comm(), edges_[0], field, archive, *arrays.array, num_edges(), "edge");
    note(field + " of edges", arrays.array->name, header_of(comm(), archive, *arrays.array).shape);
  };
  add(field_name(options, "weight"), roles.of("weight"));
  add("features", roles.of("edge_features"));
  for (const auto& [key, name] : options.fields) {
    if (!key.starts_with("edge_") || edges_[0].contains(name)) continue;
    const NpzMember* member = archive.find(name);
    require<InputError>(member != nullptr, path_, ": there is no array ", name,
                        ", expected one, which shall be the ", key);
    add(name, {.array = member});
  }
}

}  // namespace sar::formats
