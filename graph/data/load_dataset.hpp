// SPDX-License-Identifier: MIT

/// Opens datasets as GraphSources, and loads them distributed over the ranks: each rank reads its share of
/// the edges and the data of its own nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/graph_view.hpp>

#include <memory>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The form that a dataset has: all that the library reads by itself.
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

/// Collective. Opens a directory that is not partitioned: a DatasetSource. Throws InputError, the same on
/// every rank, for a path that is none, or is partitioned, and as DatasetSource.
std::unique_ptr<GraphSource> open_dataset(const Communicator& comm, const std::string& path);

/// Collective. The source's homogeneous graph, partitioned over the ranks of its communicator. Fields as in
/// to_node_data; those that it does not name are not read. Throws InputError, the same on every rank, for
/// several types, for fewer nodes than ranks, and as to_node_data.
NodeData load_dataset(GraphSource& source, const DatasetOptions& options = {});

/// Loads a homogeneous graph for training, of whatever form rank 0 finds: a partition directory, a DGL
/// partition, or a directory with
///     edge_index.npy   [2, E]        row 0 sources, row 1 destinations
///     features.npy     [N, F...]     flattened to two dimensions
///     labels.npy       [N]           of options.label_type; -1 or NaN: unlabelled
///     train_mask.npy, val_mask.npy, test_mask.npy   [N], or [N, S] of S splits: 0 or 1
///     edge_weight.npy  [E]           optional; integers must be exact as real
/// of any type that NpyFile reads. num_classes is the largest label + 1. `options.partition` is used for what
/// is not partitioned yet. A rank needs memory for about its share of nodes and edges (more with METIS, see
/// PartitionMethod). Collective; path and options are the same on every rank.
///
/// Throws InputError, the same on every rank, for a file that is missing, damaged, of another shape or
/// length; for features or weights that are not finite, a label below -1, an edge to a node that does not
/// exist, no labelled training node, an empty graph, and fewer nodes than ranks.
NodeData load_dataset(const Communicator& comm, const std::string& path, const DatasetOptions& options = {});

/// Collective. A graph with all its types and all its data. Each type of nodes is divided into parts of
/// about the same size; the options of features and fields are not used. The edges are transformed as
/// partition_graph does. Throws InputError, the same on every rank, as partition_graph.
GraphData load_graph(GraphSource& source, const DatasetOptions& options = {});
/// Collective. The same of what rank 0 finds. The options that change edges are refused for a partition,
/// which has been changed when it was made. Throws InputError, the same on every rank, too, as
/// open_dataset, load_partition and load_dgl_partition.
GraphData load_graph(const Communicator& comm, const std::string& path, const DatasetOptions& options = {});
/// Collective. The same of what was found; that of rank 0 counts.
GraphData load_graph(const Communicator& comm, const FoundDataset& found, const DatasetOptions& options);
}}  // namespace sar
