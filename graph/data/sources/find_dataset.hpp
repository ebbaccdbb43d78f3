// SPDX-License-Identifier: MIT

/// Finding out which form a dataset has: all forms that the library reads by itself.
#pragma once


#include <string>

namespace sar { inline namespace SAR_PRECISION {

enum class DatasetKind {
  unknown,
  dataset_directory,    ///< with edge_index.npy
  partition_directory,  ///< with a partition.json of ours (load_partition)
  hetero_directory,     ///< with the hetero.json of a graph of several types
  dgl_partition,        ///< the JSON of dgl.distributed.partition_graph, or the directory that holds one
};

struct FoundDataset {
  DatasetKind kind = DatasetKind::unknown;
  std::string path;  ///< the given one, or that of DGL's JSON file

  /// Whether its nodes are assigned to parts already.
  [[nodiscard]] bool is_partitioned() const noexcept {
    return kind == DatasetKind::partition_directory || kind == DatasetKind::dgl_partition;
  }
};

/// Local. Looks at names, and into the JSON files of a directory. What it does not know is `unknown`, not
/// an error.
FoundDataset find_dataset(const std::string& path);

}}  // namespace sar
