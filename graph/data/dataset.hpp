/// Datasets as directories of NumPy files, read in parallel: each worker reads its share of the edges and the
/// data of its own nodes.
///
/// Room graph/data: Graphs with data: datasets, partition directories and generated graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>
#include <sar/graph/partition/partition.hpp>

#include <cstdint>
#include <string>

namespace sar {

/// What happens to a graph between its source and the workers. The transforms of the edges run in this order,
/// and the ids of the edges do not depend on the partitioning. E is one more than the largest id of an edge
/// of the source: their number, but where a partition lost duplicates.
struct DatasetOptions {
  bool add_reverse_edges =
      false;  ///< for each edge e = (u, v) an edge (v, u) with id E + e and the weight of e
  bool add_self_loops =
      false;  ///< (v, v) for each node, weight 1; ids in the order of the nodes, after all others
  bool drop_duplicates = false;  ///< of edges with the same source and destination, the smallest id stays
  bool normalize_features =
      false;  ///< divide each row of the features by its sum; a row whose sum is 0 stays as it is
  PartitionMethod partition = PartitionMethod::contiguous;
  std::uint64_t partition_seed = 0;
};

/// Loads the directory's
///     edge_index.npy   int64 [2, E]          row 0 sources, row 1 destinations; C or Fortran order
///     features.npy     float16/32/64 or uint8 [N, F]
///     labels.npy       int64 [N]             -1: unlabelled
///     train_mask.npy, val_mask.npy, test_mask.npy   bool [N]
///     edge_weight.npy  float16/32/64 [E]     optional
/// and partitions it over the ranks of `comm`. num_classes is the largest label + 1. Memory per rank: about
/// its share of nodes and edges (besides METIS, see PartitionMethod). Collective; directory and options are
/// the same on every rank.
///
/// Throws InputError, the same on every rank, for a file that is missing, damaged, of another type, shape or
/// length; features or weights that are not finite; a label below -1; an edge to a node that does not exist;
/// no labelled training node; an empty graph; fewer nodes than ranks.
NodeData load_dataset(const Communicator& comm, const std::string& directory,
                      const DatasetOptions& options = {});

}  // namespace sar
