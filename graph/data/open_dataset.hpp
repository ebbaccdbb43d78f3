/// Finding out which form a dataset has, and opening it: all forms that the library reads by itself.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/node_data.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

enum class DatasetKind {
  unknown,
  dataset_directory,    ///< with edge_index.npy (load_dataset)
  partition_directory,  ///< with a partition.json of ours (load_partition)
  hetero_directory,     ///< with the hetero.json of a graph of several types (HeteroDatasetSource)
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

/// Looks at names, and into the JSON files of a directory. What it does not know is `unknown`, not an error.
/// Local.
FoundDataset find_dataset(const std::string& path);

/// A graph that is ready for training, and a short description: "partition directory cora: 2708 nodes, 10556
/// edges; nodes: features labels".
struct OpenedDataset {
  NodeData data;
  std::string description;
};

/// A graph with all its types and data, and its description.
struct OpenedGraph {
  GraphData graph;
  std::string description;
};

/// Loads what rank 0 found, homogeneous or not. `options.partition` is used for what is not partitioned yet;
/// the options that change edges are, too, and refused for a partition, which has been changed when it was
/// made. Collective. Throws InputError, the same on every rank, as load_graph_data, load_partition and
/// load_dgl_partition.
OpenedGraph open_graph(const Communicator& comm, const FoundDataset& found,
                       const DatasetOptions& options = {});

/// Loads what rank 0 found as a homogeneous graph; where `edges` is given, what it says of the edges, too.
/// `options.partition` is used for dataset directories only. Labels need not be there (see
/// require_training_labels). Collective. Throws InputError, the same on every rank, for an unknown kind, and
/// as load_dataset, load_partition and load_dgl_partition.
OpenedDataset open_dataset(const Communicator& comm, const FoundDataset& found,
                           const DatasetOptions& options = {}, EdgeData* edges = nullptr);

}  // namespace sar
