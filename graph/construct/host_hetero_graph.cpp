// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/construct/host_edge_order.hpp>
#include <sar/graph/construct/host_hetero_graph.hpp>
#include <sar/graph/hetero/naming.hpp>
#include <sar/graph/message/agreement.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Checks the names as HeteroGraph does, before the arrays of a type are looked up by name.
template <class Nodes, class Id>
CollectiveCall checked(const Communicator& comm, const std::vector<HostNodeType<Nodes>>& nodes,
                       const std::vector<HostEdgeType<Id>>& edges) {
  std::vector<std::string> names;
  for (const auto& type : nodes) {
    names.push_back(type.name);
    check_host_nodes(comm, type.nodes, "node");
  }
  CollectiveCall call("HostHeteroGraph");
  call.equal("number of node types", nodes.size()).equal("number of edge types", edges.size());
  for (const auto& each : edges) {
    const EdgeType& type = each.type;
    for (const std::string& end : {type.source, type.destination})
      if (std::find(names.begin(), names.end(), end) == names.end())
        throw InputError(concat("edge type '", type.canonical_name(), "': there is no node type '", end,
                                "'; the node types are ", quoted_list(names)));
    naming(type, [&] { check_host_edges(comm, each.edges); });
    require<InputError>(!each.add_reverse_edges || type.source == type.destination, "edge type '",
                        type.canonical_name(),
                        "': add_reverse_edges is set, expected one type of sources and destinations");
    call.equal("choice of add_reverse_edges", each.add_reverse_edges);
  }
  return call;
}

}  // namespace

struct HostHeteroGraph::Parts {
  HeteroGraph graph;
  std::shared_ptr<const std::vector<HostEdgeOrder>> orders;

  /// Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const std::vector<HostNodeType<Nodes>>& nodes,
                    const std::vector<HostEdgeType<Id>>& edges, const GraphOptions& options) {
    std::vector<HostNodes<Nodes>> of_host;
    std::vector<NodeTypeSpec> node_types;
    for (const auto& type : nodes) {
      const auto own = own_nodes(type.nodes);
      of_host.push_back(host_nodes(comm, type.nodes, "node"));
      node_types.push_back({.name = type.name, .book = of_host.back().book, .ids = {own.begin(), own.end()}});
    }
    const auto nodes_of = [&](const std::string& name) -> const HostNodes<Nodes>& {
      const auto found =
          std::find_if(nodes.begin(), nodes.end(), [&](const auto& type) { return type.name == name; });
      return of_host[static_cast<std::size_t>(found - nodes.begin())];
    };
    std::vector<EdgeTypeSpec> edge_types;
    std::vector<BroughtEdges> brought;
    for (const auto& each : edges) {
      brought.push_back(naming(each.type, [&] {
        return bring_host_edges(comm, nodes_of(each.type.source), nodes_of(each.type.destination), each.edges,
                                each.add_reverse_edges);
      }));
      edge_types.push_back({.type = each.type, .edges = std::exchange(brought.back().edges, {})});
    }
    HeteroGraph graph(comm, std::move(node_types), std::move(edge_types), options);
    std::vector<HostEdgeOrder> orders;
    for (std::size_t k = 0; k < edges.size(); ++k) {
      brought[k].find_places(graph[edges[k].type].edge_ids());
      orders.push_back(std::move(brought[k].order));
    }
    return {std::move(graph), std::make_shared<const std::vector<HostEdgeOrder>>(std::move(orders))};
  }
};

HostHeteroGraph::HostHeteroGraph(Parts parts)
    : HeteroGraph(std::move(parts.graph)), orders_(std::move(parts.orders)) {}

HostHeteroGraph::HostHeteroGraph(const Communicator& comm, const std::vector<GlobalNodeType>& nodes,
                                 const std::vector<GlobalEdgeType>& edges, const GraphOptions& options)
    : HostHeteroGraph(collective(
          comm, [&] { return checked(comm, nodes, edges); },
          [&] { return Parts::make(comm, nodes, edges, options); })) {}

HostHeteroGraph::HostHeteroGraph(const Communicator& comm, const std::vector<LocalNodeType>& nodes,
                                 const std::vector<LocalEdgeType>& edges, const GraphOptions& options)
    : HostHeteroGraph(collective(
          comm, [&] { return checked(comm, nodes, edges); },
          [&] { return Parts::make(comm, nodes, edges, options); })) {}

Tensor HostHeteroGraph::to_graph_order(const EdgeType& type, const Tensor& rows,
                                       const Tensor& reverse_rows) const {
  return comm().agree([&] {
    const CallScope compared(
        comm(), CollectiveCall("HostHeteroGraph::to_graph_order").equal("edge type", type.canonical_name()));
    const std::size_t k = find_edge_type(edge_types(), type.canonical_name());
    return (*orders_)[k].to_graph_order((*this)[type], rows, reverse_rows);
  });
}

Tensor HostHeteroGraph::to_host_order(const EdgeType& type, const Tensor& rows, bool reverse) const {
  return comm().agree([&] {
    const CallScope compared(
        comm(), CollectiveCall("HostHeteroGraph::to_host_order").equal("edge type", type.canonical_name()));
    const std::size_t k = find_edge_type(edge_types(), type.canonical_name());
    return (*orders_)[k].to_host_order((*this)[type], rows, reverse);
  });
}

}}  // namespace sar
