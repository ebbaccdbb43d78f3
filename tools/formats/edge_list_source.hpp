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
class EdgeListSource : public FileSource {
 public:
  /// Reads everything. Collective; throws InputError, the same on every rank.
  EdgeListSource(const Communicator& comm, const std::string& path, const SourceOptions& options);

  [[nodiscard]] std::string description() const override;
  /// Have the nodes names?
  [[nodiscard]] bool has_node_keys() const noexcept { return keys_ != nullptr; }
  /// Writes line i = name of node i. Collective.
  void write_node_keys(const std::string& directory) const override;

 private:
  void guess_format(const SourceOptions& options);
  void read_integers(Index block_bytes);
  void read_names(Index block_bytes);
  void name_integers();
  void replace_handles();
  void add_edge_data(const SourceOptions& options);

  EdgeListFormat format_;
  Index largest_ = -1;  // node, when they are integers
  std::unique_ptr<NodeKeys> keys_;
};

}  // namespace sar::formats
