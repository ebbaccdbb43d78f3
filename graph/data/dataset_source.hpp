// SPDX-License-Identifier: MIT

/// A directory of NumPy files as a source of a graph.
#pragma once

#include <sar/core/files/npy.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <deque>
#include <map>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// For a homogeneous graph, reads the files that load_dataset() lists (edge_index.npy and features.npy, or
/// feat.npy, are required), and also
///     X.npy        with one row for each node: the node field "X"
///     edge_X.npy   with one row for each edge: the edge field "X"; edge_weight.npy must have one, and so
///                    must edge_labels, edge_type, edge_split, edge_train_mask, edge_val_mask, edge_test_mask
/// Other files are left alone.
///
/// Of a graph with several types, the form that docs/file_formats.md describes: hetero.json, which names the
/// types and their sizes; nodes/TYPE/FIELD.npy with a row for each node of the type;
/// edges/SRC:NAME:DST/edge_index.npy [2, edges], with numbers of nodes within their types, and beside it
/// edge_FIELD.npy with a row for each edge.
///
/// Each rank reads the files on demand, without communication.
class DatasetSource : public GraphSource {
 public:
  /// Collective. `names` are those of DatasetOptions::fields. A file that they name takes the place of the
  /// usual one, so that features.npy need not be there. With `for_training`, labels and masks of a
  /// homogeneous graph must be there. Throws InputError, the same on every rank, for files that are missing
  /// or damaged or of another length than hetero.json says, for folders of types that it does not name, and
  /// when ranks see different files.
  using FieldNames = std::map<std::string, std::string>;
  DatasetSource(const Communicator& comm, const std::string& directory, const FieldNames& names = {},
                bool for_training = false);

  [[nodiscard]] EdgeList read_edges(std::size_t type) override;
  [[nodiscard]] DataArray read_node_data(std::size_t type, const std::string& field,
                                         std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data(std::size_t type, const std::string& field,
                                         std::span<const Index> edges) override;
  [[nodiscard]] std::string place_of(const std::string& field) const override;

 private:
  using Files = std::map<std::string, NpyFile>;  // by field

  [[nodiscard]] std::string name_of(const FieldNames& names, const std::string& key,
                                    const std::string& other) const;
  void open_files(const FieldNames& names, bool for_training);
  void open_others();
  void open_types();
  void open_nodes(NodeTypeData& type);
  void open_edges(EdgeTypeData& type);
  void require_named_folders() const;
  void require_same_files() const;
  DataArray read(const Files& files, const std::string& of, const std::string& field,
                 std::span<const Index> rows) const;

  std::string directory_;
  std::deque<NpyFile> edge_index_;   // by type of edges
  std::deque<Files> nodes_, edges_;  // by type
};

/// Local. The text of hetero.json.
std::string format_dataset_types(const GraphData& types);

// Edges in a file, as an array of two rows: sources and destinations.

/// Local. Throws InputError, beginning with `place`, for an edge to a node that does not exist. Edges are
/// numbered from first_id on.
void require_nodes(const std::string& place, Index first_id, std::span<const Index> src,
                   std::span<const Index> dst, Index num_sources, Index num_destinations);

/// Local. Edges [begin, end) of an array [2, E] in C or Fortran order; the id of an edge is its column.
/// Throws InputError for an element that is not an integer, and as require_nodes().
EdgeList read_edge_range(const NpyFile& edge_index, Index num_sources, Index num_destinations, Index begin,
                         Index end);

// Writing any graph as a dataset directory.

/// Collective. Writes into a new directory what DatasetSource reads. Of a homogeneous graph, these are
/// edge_index.npy [2, E], NAME.npy for each node field, and edge_NAME.npy for each edge field (a name that
/// begins with edge_ stays as it is). Nodes and edges keep their ids. A rank needs memory for its share of
/// the edges and some MB. Throws InputError, the same on every rank, when the directory exists or cannot be
/// written, for a field whose name no file can have, for two edge fields with one file, for a node field that
/// would be read as an edge field, and what the source throws; then nothing is left behind.
void write_dataset(GraphSource& source, const std::string& directory);
}}  // namespace sar
