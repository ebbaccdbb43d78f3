/// Node and edge types, in the form that relational layers take.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/hetero_block.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/hetero/hetero_graph.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <optional>

namespace sar::tools {

/// Types of this rank's edges, in the graph's edge order, and of its nodes.
struct Relations {
  EdgeTypes types;              ///< of local edges
  Tensor norm;                  ///< [local edges, 1]: relation_norm(); rgcn only
  bool averages_types = false;  ///< norm averages over the in-edges of one type, not over all in-edges
  Array<Index> node_types;      ///< [local sources]; empty for one type
  // Relation by relation, for the models that go so:
  std::optional<HeteroGraph> graph = {};
  std::optional<HeteroBlock> block = {};  ///< set for a message flow graph
};

/// Returns the relations of the edges of a block, taken from the whole graph. Collective.
Relations relations_of(const MessageFlowGraph& block, const Relations& of_graph);

/// Generates edge types 0 .. num_rels - 1. For about half of the edges the type is the difference of the
/// classes of the two ends, modulo num_rels; for the others, and for all edges if `labels` [local nodes, 1]
/// is undefined, it is random. Types depend on labels and edge ids only, so they are the same for every
/// number of ranks. Collective.
Relations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels);

}  // namespace sar::tools
