/// Edge types for graphs that have none.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/models/relations.hpp>

namespace sar::tools {

/// Collective. Generates edge types 0 .. num_rels - 1. For about half of the edges the type is the
/// difference of the classes of the two ends, modulo num_rels; for the others, and for all edges if
/// `labels` [local nodes, 1] is undefined, it is random. Types depend on labels and edge ids only, so they
/// are the same for every number of ranks.
GraphRelations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels);

}  // namespace sar::tools
