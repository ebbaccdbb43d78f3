/// Edge lists as sources of graphs.
#pragma once

#include "edge_list.hpp"
#include "file_source.hpp"
#include "node_keys.hpp"
#include "source_options.hpp"

#include <memory>
#include <string>

namespace sar::formats {

/// A text with an edge a line: source and destination, then perhaps numbers; comments begin with # or %.
/// Edge e is the e-th line that is no comment, header or empty line. Columns that the header calls split,
/// label or labels, and type, are edge data "split", "labels" and "type"; those that SourceOptions::fields
/// names keep their names. Of the others, one is "weight", several are "features" [columns]; float64.
///
/// With SourceOptions::relations, several texts by type, "author:writes:paper". Then nodes are numbered from 0
/// within their types (NodeIds::dense), and a type has as many as the largest number in its columns of all
/// files says, or more if there are more rows of its data: SourceOptions::node_data by type and name,
/// "paper/features".
class EdgeListSource : public FileSource {
 public:
  /// Reads everything; `path` is not used with relations. Collective; throws InputError, the same on every
  /// rank.
  EdgeListSource(const Communicator& comm, const std::string& path, const SourceOptions& options);

  [[nodiscard]] std::string description() const override;
  /// Writes line i = name of node i, if the nodes have names. Collective.
  void write_node_keys(const std::string& directory) const override;

 private:
  void read_edges_of(SourceEdges type, const std::string& path, const SourceOptions& options);

  std::unique_ptr<NodeKeys> keys_;
};

}  // namespace sar::formats
