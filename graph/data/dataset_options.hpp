/// What happens to a graph between its source and the workers.
#pragma once

#include <sar/graph/partition/partition.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// The edges are transformed in the order of the first three options, and the ids of the edges do not depend
/// on the partitioning. E is one more than the largest edge id of the source: the number of edges, unless a
/// partition lost duplicates.
struct DatasetOptions {
  bool add_reverse_edges = false;   ///< each edge e = (u, v) gets an edge (v, u) with id E + e and its weight
  bool add_self_loops = false;      ///< (v, v) for each node, weight 1; ids in node order, after all others
  bool drop_duplicates = false;     ///< of edges with the same ends, only the one of smallest id stays
  bool normalize_features = false;  ///< divide each row of the features by its sum, unless that is 0
  PartitionMethod partition = PartitionMethod::contiguous;
  std::uint64_t partition_seed = 0;
  /// Which field is "features", "labels", "train_mask", "val_mask", "test_mask" (of the nodes) or "weight"
  /// (of the edges), where not the one of the usual name: {{"features", "x"}}; of the edges, too, what
  /// EdgeData names, for tasks on edges. A field that is named here must exist.
  std::map<std::string, std::string> fields = {};
  /// Whether EdgeData gets these; what nothing wants is neither read nor checked.
  bool edge_labels = true, edge_types = true;
  bool features = true;  ///< otherwise NodeData::features has no columns, and no file is read for them
  bool labels = true;    ///< otherwise NodeData has no labels and masks
};

}}  // namespace sar
