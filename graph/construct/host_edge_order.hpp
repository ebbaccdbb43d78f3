// SPDX-License-Identifier: MIT

/// Converts a host's nodes and edges to those of a graph, and edge rows between both orders.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/edge_ends.hpp>
#include <sar/graph/construct/host_edges.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// The mapping between the order in which a host gave its edges and their order in a graph.
struct HostEdgeOrder {
  Index num_given = 0;
  bool reversed = false;
  RowRoute route;                ///< of the given edges, followed by their reverse edges
  Array<std::int32_t> places{};  ///< position in the graph's order of each received edge

  /// Collective. Implements HostGraph::to_graph_order and to_host_order.
  [[nodiscard]] Tensor to_graph_order(const Graph& graph, const Tensor& rows,
                                      const Tensor& reverse_rows) const;
  [[nodiscard]] Tensor to_host_order(const Graph& graph, const Tensor& rows, bool reverse) const;
};

/// Edges after their redistribution to the owners of their destinations.
struct BroughtEdges {
  EdgeList edges;
  Array<Index> arrived;  ///< ids of the received edges
  HostEdgeOrder order;   ///< places are not set yet

  /// Local. Computes order.places.
  void find_places(const Array<Index>& edge_ids);
};

/// Local. Check the arrays of a rank. Throw ShapeError or InputError.
void check_host_nodes(const Communicator& comm, std::span<const Index> nodes, const char* what);
void check_host_nodes(const Communicator& comm, const LocalToGlobal& nodes, const char* what);
template <class Id>
void check_host_edges(const Communicator& comm, const HostEdges<Id>& edges);

/// Collective. Returns the nodes of one end of the edges, which may also be those of the other end; `nodes`
/// must outlive the result. Each rank owns the nodes that it gives.
template <class Nodes>
HostNodes<Nodes> host_nodes(const Communicator& comm, const Nodes& nodes, const char* what) {
  return {nodes, what, gather_book(comm, static_cast<Index>(own_nodes(nodes).size()))};
}

/// Collective. Computes the global ids of the edges' ends and sends the edges and their weights to the
/// owners of their destinations, reverse edges last. If `src` and `dst` are the same object, they are one
/// set of nodes. Throws as HostGraph.
template <class Nodes, class Id>
BroughtEdges bring_host_edges(const Communicator& comm, const HostNodes<Nodes>& src,
                              const HostNodes<Nodes>& dst, const HostEdges<Id>& edges, bool add_reverse);
}}  // namespace sar
