/// OGB's node property prediction datasets as sources of graphs.
#pragma once

#include "csv_table.hpp"
#include "file_source.hpp"
#include "npz.hpp"
#include "source_options.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sar::formats {

/// A folder of one homogeneous graph as the ogb package downloads it: raw/*.csv.gz, or raw/data.npz with
/// raw/node-label.npz, and split/<scheme>/{train,valid,test}.csv.gz. Node data are "features" float32,
/// "labels" ([N], or [N, tasks]; missing: -1 or NaN), "train_mask", "val_mask", "test_mask", and what
/// other files there are under their own names, such as "node_year"; edge data are "features" and others.
/// Undirected datasets list each edge once, here, too.
class OgbSource : public FileSource {
 public:
  /// Reads everything, except for arrays that are stored in .npz files: their rows are read when they are
  /// asked for. Collective; throws InputError, the same on every rank.
  OgbSource(const Communicator& comm, const std::string& path, const SourceOptions& options);

 private:
  [[nodiscard]] std::string find_file(const std::string& name, bool required) const;
  [[nodiscard]] std::vector<std::string> other_files(const std::string& beginning) const;
  void read_text_graph();
  void read_text_field(FieldTable& to, const std::string& field, const std::string& path, bool features);
  template <class T>
  DataArray read_table(const std::string& path, const TableFormat& format, const PartitionBook& slices);
  Index read_count(const std::string& name);

  void read_binary_graph();
  void read_binary_edges(const NpzFile& archive);
  void add_binary_field(FieldTable& to, const std::string& field, const NpzFile& archive,
                        const NpzMember& member);

  void read_splits(const std::string& scheme);
  void read_split(const std::string& path, const std::string& mask);

  Index block_bytes_;
};

}  // namespace sar::formats
