/// What the sources of graphs in files have in common: once a source is open, its edges and the data of its
/// nodes and edges can be read.
#pragma once

#include "edge_chunks.hpp"
#include "field_data.hpp"

#include <sar/graph/data/graph_source.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar::formats {

class FileSource : public GraphSource {
 public:
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] Index num_nodes() const override { return num_nodes_; }
  [[nodiscard]] Index num_edges() const override { return num_edges_; }
  [[nodiscard]] const std::vector<DataField>& node_fields() const override { return nodes_.fields; }
  [[nodiscard]] const std::vector<DataField>& edge_fields() const override { return edges_.fields; }
  [[nodiscard]] EdgeList read_edges() override;
  [[nodiscard]] DataArray read_node_data(const std::string& field, std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data(const std::string& field, std::span<const Index> edges) override;
  [[nodiscard]] std::string place_of(const std::string& field) const override;

 protected:
  /// `kind` begins the description: "edge list".
  FileSource(const Communicator& comm, std::string kind, const std::string& path);

  /// Data of nodes in .npy files, by name. Collective.
  void add_node_files(const std::map<std::string, std::string>& files);
  /// Throws when there are no nodes, or so many for the edges that the number cannot be meant. `place` begins
  /// the message. Local.
  void require_plausible_size(const std::string& place) const;

  std::string path_;
  std::string kind_;
  std::string name_;  ///< the path's last part without extensions
  Index num_nodes_ = 0;
  Index num_edges_ = 0;
  EdgeChunks chunks_;
  FieldTable nodes_;
  FieldTable edges_;
};

}  // namespace sar::formats
