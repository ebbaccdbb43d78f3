/// OGB's datasets of node property prediction with several types of nodes and edges, as sources of graphs.
#pragma once

#include "ogb_text.hpp"
#include "source_options.hpp"

#include <sar/graph/data/hetero_source.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::formats {

/// A folder of one graph with several types as the ogb package downloads it (ogbn-mag):
/// raw/num-node-dict.csv.gz, raw/triplet-type-list.csv.gz, raw/relations/<src>___<name>___<dst>/edge.csv.gz
/// and num-edge-list.csv.gz, raw/node-feat/<type>/node-feat.csv.gz, raw/node-label/<type>/node-label.csv.gz,
/// raw/node_X/<type>/node_X.csv.gz, and split/<scheme>/<type>/{train,valid,test}.csv.gz. Data have the names
/// that OgbSource gives them. Types are in the order of their names, as in the ogb package.
class OgbHeteroSource : public HeteroSource {
 public:
  /// Reads everything. Collective; throws InputError, the same on every rank.
  OgbHeteroSource(const Communicator& comm, const std::string& path, const SourceOptions& options);

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] EdgeList read_edges_of(std::size_t type) override;
  [[nodiscard]] DataArray read_node_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> nodes) override;
  [[nodiscard]] DataArray read_edge_data_of(std::size_t type, const std::string& field,
                                            std::span<const Index> edges) override;

 private:
  void read_node_types();
  void read_edge_types();
  void require_flag(const std::string& file, const std::string& type, bool there,
                    const std::string& what) const;
  void read_type(std::size_t type);
  void read_relation(std::size_t type);

  std::string path_;
  std::string name_;
  Index block_bytes_;
  OgbText raw_;
  std::vector<std::string> node_files_;    // raw/node_X
  std::string split_;                      // empty: there is none
  std::vector<FieldTable> nodes_, edges_;  // by type
  std::vector<EdgeChunks> chunks_;         // by type of edges
};

/// Whether a folder is one of these. Local.
bool is_ogb_hetero(const std::string& path);

}  // namespace sar::formats
