/// One door for the forms of a dataset that the library reads by itself.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/node_data.hpp>

#include <string>

namespace sar {

enum class DatasetKind {
  unknown,
  dataset_directory,    ///< with edge_index.npy (load_dataset)
  partition_directory,  ///< with a partition.json of ours (load_partition)
  dgl_partition,        ///< the JSON of dgl.distributed.partition_graph, or the directory that holds one
};

struct FoundDataset {
  DatasetKind kind = DatasetKind::unknown;
  std::string path;  ///< the one given, or that of DGL's JSON file

  /// Are its nodes assigned to workers already?
  [[nodiscard]] bool is_partitioned() const noexcept {
    return kind == DatasetKind::partition_directory || kind == DatasetKind::dgl_partition;
  }
};

/// What `path` is. Looks at names, and into JSON files of a directory. Local; throws nothing about what it
/// does not know.
FoundDataset find_dataset(const std::string& path);

/// A graph that is ready for training, and what it was found to be in a few words: "partition directory cora:
/// 2708 nodes, 10556 edges; nodes: features labels".
struct OpenedDataset {
  NodeData data;
  std::string description;
};

/// Loads what was found, as rank 0 found it. `options.partition` is for dataset directories. Labels need not
/// be there (require_training_labels). Collective. Throws InputError, the same on every rank, for an unknown
/// kind, and as the functions that do the work.
OpenedDataset open_dataset(const Communicator& comm, const FoundDataset& found,
                           const DatasetOptions& options = {});

}  // namespace sar
