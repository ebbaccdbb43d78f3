/// Types of nodes and edges, as layers for graphs of many types read them.
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

/// What the layers need to know of this worker's edges, in the graph's edge order, and of its nodes.
struct Relations {
  EdgeTypes types;              ///< of local edges
  Tensor norm;                  ///< [local edges, 1]: relation_norm(); of rgcn only
  bool averages_types = false;  ///< norm is by type of edge, and not of all in-edges of a node
  Array<Index> node_types;      ///< [local sources]; none for one type
  // Relation by relation, for the models that go so:
  std::optional<HeteroGraph> graph = {};
  std::optional<HeteroBlock> block = {};  ///< of a message flow graph
};

/// Those of a block's edges, as far as the whole graph has them. Collective.
Relations relations_of(const MessageFlowGraph& block, const Relations& of_graph);

/// Types 0 .. num_rels - 1. The type of about every other edge tells how far apart the classes of its ends
/// are, modulo num_rels. The other types are drawn, and so are all types when `labels` [local nodes, 1] is
/// undefined. They depend on labels and edge ids only: any number of workers gets the same. Collective.
Relations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels);

}  // namespace sar::tools
