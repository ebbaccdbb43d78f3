/// Edge types for graphs that have none.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar::tools {

/// What a relational convolution needs to know of this worker's edges, in the graph's edge order.
struct Relations {
  Array<Index> types;  ///< [local edges]
  Tensor norm;         ///< [local edges, 1]: 1 / in-degree of the destination, so that messages are averaged
};

/// Relations::norm of a graph or of a block. Collective.
Tensor averaging_norm(const GraphShardManager& graph);

/// Types 0 .. num_rels - 1. The type of about every other edge tells how far apart the classes of its ends
/// are, modulo num_rels. The other types are drawn, and so are all types when `labels` [local nodes, 1] is
/// undefined. They depend on labels and edge ids only: any number of workers gets the same. Collective.
Relations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels);

}  // namespace sar::tools
