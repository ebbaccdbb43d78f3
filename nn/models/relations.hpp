// SPDX-License-Identifier: MIT

/// Node and edge types, in the form that relational layers take, and features of the edges.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

/// Types of this rank's edges, in the graph's edge order, and of its nodes.
struct GraphRelations {
  EdgeTypes types;              ///< of local edges
  Tensor norm;                  ///< [local edges, 1]: relation_norm() times edge weights; rgcn only
  bool averages_types = false;  ///< norm averages over the in-edges of one type, not over all in-edges
  Array<Index> node_types;      ///< [local sources]; empty for one type
  Variable edge_feats = {};     ///< [local edges, D], of layers that read features of the edges
  // Relation by relation, for the models that go so:
  std::optional<Graph> graph = {};
  std::optional<MessageFlowGraph> block = {};  ///< set for a message flow graph
};

struct ModelDescription;
struct ModelType;

/// Local. Throws InputError unless a network with this description can run on a graph with these types.
void require_types(const ModelDescription& description, const Graph& graph);

/// Collective. Returns what networks of a type read of a graph, in its homogeneous form. O(edges).
[[nodiscard]] GraphRelations relations_of(const Graph& graph, const ModelType& type);

/// Local. Multiplies the factors of edges, [local edges, 1], by the weights of the graph's edges if it has
/// some, in place, and returns them.
[[nodiscard]] Tensor weighted_norm(Tensor norm, const Graph& graph);

/// Local. Returns the relations of the edges of a block, taken from the whole graph.
[[nodiscard]] GraphRelations relations_of(const MessageFlowGraph& block, const GraphRelations& of_graph);

}}  // namespace sar
