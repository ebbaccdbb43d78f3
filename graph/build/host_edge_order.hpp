/// From a host's nodes and edges to those of a graph, and rows of edges in both orders.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/build/edge_ends.hpp>
#include <sar/graph/build/host_edges.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// Where the edges that a host gave are in a graph.
struct HostEdgeOrder {
  Index num_given = 0;
  bool reversed = false;
  RowRoute route;                ///< of the given edges, then of their reverse
  Array<std::int32_t> places{};  ///< in the graph's order, of each edge that arrived

  /// As HostGraph::to_graph_order and to_host_order, of this graph. Collective.
  [[nodiscard]] Tensor to_graph_order(const GraphShardManager& graph, const Tensor& rows,
                                      const Tensor& reverse_rows) const;
  [[nodiscard]] Tensor to_host_order(const GraphShardManager& graph, const Tensor& rows, bool reverse) const;
};

/// Edges at the owners of their destinations.
struct BroughtEdges {
  EdgeList edges;
  Array<Index> arrived;  ///< their ids
  HostEdgeOrder order;   ///< without places

  /// Sets order.places. Local.
  void find_places(const Array<Index>& edge_ids);
};

/// What a rank checks of its arrays. Local. Throw ShapeError, InputError.
void check_host_nodes(const Communicator& comm, std::span<const Index> nodes, const char* what);
void check_host_nodes(const Communicator& comm, const LocalToGlobal& nodes, const char* what);
void check_host_edges(const Communicator& comm, const GlobalEdges& edges);
void check_host_edges(const Communicator& comm, const LocalEdges& edges);

/// The nodes of one end of the edges, which may be those of the other end, too; `nodes` outlive them. Each
/// rank owns those that it gives. Collective.
HostNodes<std::span<const Index>> host_nodes(const Communicator& comm, const std::span<const Index>& nodes,
                                             const char* what);
HostNodes<LocalToGlobal> host_nodes(const Communicator& comm, const LocalToGlobal& nodes, const char* what);

/// Names the edges and takes them to the owners of their destinations, with their weights; the reverse ones
/// after the others. The same object as `src` and `dst` is one set of nodes. Collective. Throws as HostGraph.
BroughtEdges bring_host_edges(const Communicator& comm, const HostNodes<std::span<const Index>>& src,
                              const HostNodes<std::span<const Index>>& dst, const GlobalEdges& edges,
                              bool add_reverse);
BroughtEdges bring_host_edges(const Communicator& comm, const HostNodes<LocalToGlobal>& src,
                              const HostNodes<LocalToGlobal>& dst, const LocalEdges& edges, bool add_reverse);

}  // namespace sar
