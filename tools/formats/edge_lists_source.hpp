/// Several edge lists, one for each type of edges, as the source of one graph.
#pragma once

#include "edge_list_source.hpp"
#include "field_data.hpp"
#include "source_options.hpp"

#include <sar/graph/data/hetero_source.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar::formats {

/// SourceOptions::relations has the files by type, "author:writes:paper". Nodes are numbered from 0 within
/// their types (NodeIds::dense), and a type has as many as the largest number in its columns of all files
/// says, or more if there are more rows of its data: SourceOptions::node_data by type and name,
/// "paper/features". Edges and their data are those of EdgeListSource.
class EdgeListsSource : public HeteroSource {
 public:
  /// Reads everything. Collective; throws InputError, the same on every rank.
  EdgeListsSource(const Communicator& comm, const SourceOptions& options);

  [[nodiscard]] std::string name() const override { return "edge lists"; }
  [[nodiscard]] std::string description() const override { return "edge lists: " + describe_types(); }
  [[nodiscard]] EdgeList read_edges_of(std::size_t type) override;
  [[nodiscard]] DataArray read_node_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> edges) override;

 private:
  SourceNodes& nodes_of(const std::string& type);
  void read_relation(const std::string& type, const std::string& path, SourceOptions options);
  void open_node_data(const std::string& key, const std::string& path);

  std::vector<std::unique_ptr<EdgeListSource>> files_;  // by type of edges
  std::vector<EdgeList> edges_;
  std::map<std::string, FieldTable> node_data_;  // by type
};

}  // namespace sar::formats
