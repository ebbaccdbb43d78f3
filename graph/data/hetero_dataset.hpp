/// A directory of NumPy files, one folder for each type, as a source of a graph with several types.
#pragma once

#include <sar/graph/data/hetero_source.hpp>

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The form that docs/file_formats.md describes: hetero.json, which names the types and their sizes;
/// nodes/TYPE/FIELD.npy with a row for each node of the type; edges/SRC:NAME:DST/edge_index.npy, int64 [2,
/// edges], with numbers of nodes within their types, and beside it edge_FIELD.npy with a row for each edge.
/// Each rank reads the files on demand, without communication.
class HeteroDatasetSource : public HeteroSource {
 public:
  /// Collective. Throws InputError, the same on every rank, that names type and file: for files that are
  /// missing or damaged or of another length than hetero.json says, for folders of types that it does not
  /// name, and when ranks see different files.
  HeteroDatasetSource(const Communicator& comm, const std::string& directory);
  ~HeteroDatasetSource() override;

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] EdgeList read_edges_of(std::size_t type) override;
  [[nodiscard]] DataArray read_node_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> edges) override;

 private:
  using Files = std::map<std::string, NpyFile>;  // by field

  void open_nodes(SourceNodes& type);
  void open_edges(SourceEdges& type);
  void require_named_folders() const;
  void require_same_files() const;
  DataArray read(const Files& files, const std::string& of, const std::string& field,
                 std::span<const Index> rows) const;

  std::string directory_;
  std::string name_;
  std::deque<NpyFile> edge_index_;   // by type of edges
  std::deque<Files> nodes_, edges_;  // by type
};

/// The text of hetero.json. Local.
std::string format_dataset_types(const SourceTypes& types);

}  // namespace sar
