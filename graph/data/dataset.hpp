/// Datasets as directories of NumPy files, read in parallel: each rank reads its share of the edges and the
/// data of its own nodes.
///
/// Room graph/data: Graphs with data: datasets, partition directories and generated graphs.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/node_data.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// Loads the directory's
///     edge_index.npy   int64 [2, E]          row 0 sources, row 1 destinations; C or Fortran order
///     features.npy     float16/32/64 or uint8 [N, F]
///     labels.npy       int64 [N]             -1: unlabelled
///     train_mask.npy, val_mask.npy, test_mask.npy   bool [N]
///     edge_weight.npy  float16/32/64 [E]     optional; uint8 or int8/16/32/64 that are exact as real
/// and partitions it over the ranks of `comm`. num_classes is the largest label + 1. A rank needs memory for
/// about its share of nodes and edges (more with METIS, see PartitionMethod). Collective; directory and
/// options are the same on every rank.
///
/// Throws InputError, the same on every rank, for a file that is missing, damaged, of another type, shape or
/// length; for features or weights that are not finite, a label below -1, an edge to a node that does not
/// exist, no labelled training node, an empty graph, and fewer nodes than ranks.
NodeData load_dataset(const Communicator& comm, const std::string& directory,
                      const DatasetOptions& options = {});

}  // namespace sar
