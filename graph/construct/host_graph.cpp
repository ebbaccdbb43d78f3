// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/construct/host_edge_order.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/graph/hetero/graph_types.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the nodes of a graph with one set of nodes, or of one end of a bipartite graph. Throws InputError
/// if there are none. Collective.
template <class Nodes>
HostNodes<Nodes> some_nodes(const Communicator& comm, const Nodes& given, const char* what) {
  HostNodes<Nodes> nodes = host_nodes(comm, given, what);
  require<InputError>(nodes.book.num_nodes() > 0, "HostGraph: none of the ", comm.size(), " ranks gives a ",
                      what, ", expected one at least");
  return nodes;
}

/// Checks the names as Graph does, before the arrays of a type are looked up by name.
template <class Nodes, class Id>
CollectiveCall checked(const Communicator& comm, const std::vector<HostNodeType<Nodes>>& nodes,
                       const std::vector<HostEdgeType<Id>>& edges) {
  std::vector<std::string> names;
  for (const auto& type : nodes) {
    names.push_back(type.name);
    check_host_nodes(comm, type.nodes, "node");
  }
  CollectiveCall call("HostGraph");
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

struct HostGraph::Parts {
  Graph graph;
  std::shared_ptr<const std::vector<HostEdgeOrder>> orders;

  /// For one set of nodes. Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const Nodes& nodes, const HostEdges<Id>& edges,
                    const HostGraphOptions& options) {
    check_host_nodes(comm, nodes, "node");
    check_host_edges(comm, edges);
    agree_on_options(comm, options);
    const HostNodes<Nodes> both = some_nodes(comm, nodes, "node");
    return make(comm, both, both, edges, options);
  }
  /// For a set of sources and a set of destinations. Collective.
  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const Nodes& src_nodes, const Nodes& dst_nodes,
                    const HostEdges<Id>& edges, const HostGraphOptions& options) {
    check_host_nodes(comm, src_nodes, "source");
    check_host_nodes(comm, dst_nodes, "destination");
    check_host_edges(comm, edges);
    agree_on_options(comm, options);
    require<InputError>(!options.add_reverse_edges,
                        "HostGraph: add_reverse_edges is set for a set of sources and a set of destinations, "
                        "expected one set of nodes");
    const HostNodes<Nodes> src = some_nodes(comm, src_nodes, "source");
    const HostNodes<Nodes> dst = some_nodes(comm, dst_nodes, "destination");
    return make(comm, src, dst, edges, options);
  }
  /// With types. Collective.
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
    Graph graph(comm, std::move(node_types), std::move(edge_types), options);
    std::vector<HostEdgeOrder> orders;
    for (std::size_t k = 0; k < edges.size(); ++k) {
      brought[k].find_places(graph[edges[k].type].edge_ids());
      orders.push_back(std::move(brought[k].order));
    }
    return {std::move(graph), std::move(orders)};
  }

 private:
  Parts(Graph made, std::vector<HostEdgeOrder> its_orders)
      : graph(std::move(made)),
        orders(std::make_shared<const std::vector<HostEdgeOrder>>(std::move(its_orders))) {}

  template <class Nodes, class Id>
  static Parts make(const Communicator& comm, const HostNodes<Nodes>& src, const HostNodes<Nodes>& dst,
                    const HostEdges<Id>& edges, const HostGraphOptions& options) {
    BroughtEdges brought = bring_host_edges(comm, src, dst, edges, options.add_reverse_edges);
    const auto src_ids = own_nodes(src.nodes), dst_ids = own_nodes(dst.nodes);
    Graph graph(comm, src.book, dst.book, std::move(brought.edges), &src == &dst, options.graph,
                {src_ids.begin(), src_ids.end()}, {dst_ids.begin(), dst_ids.end()});
    brought.find_places(graph.edge_ids());
    std::vector<HostEdgeOrder> order;
    order.push_back(std::move(brought.order));
    return {std::move(graph), std::move(order)};
  }

  static void agree_on_options(const Communicator& comm, const HostGraphOptions& options) {
    comm.require_equal(CollectiveCall("HostGraph")
                           .equal(options.graph)
                           .equal("add_reverse_edges", options.add_reverse_edges ? 1 : 0));
  }
};

HostGraph::HostGraph(Parts parts) : Graph(std::move(parts.graph)), orders_(std::move(parts.orders)) {}

HostGraph::HostGraph(const Communicator& comm, std::span<const std::int64_t> nodes, const GlobalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(comm.agree([&] { return Parts::make(comm, nodes, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const LocalToGlobal& nodes, const LocalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(comm.agree([&] { return Parts::make(comm, nodes, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const GlobalEnds& nodes, const GlobalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(
          comm.agree([&] { return Parts::make(comm, nodes.sources, nodes.destinations, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const LocalEnds& nodes, const LocalEdges& edges,
                     const HostGraphOptions& options)
    : HostGraph(
          comm.agree([&] { return Parts::make(comm, nodes.sources, nodes.destinations, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const std::vector<GlobalNodeType>& nodes,
                     const std::vector<GlobalEdgeType>& edges, const GraphOptions& options)
    : HostGraph(collective(
          comm, [&] { return checked(comm, nodes, edges); },
          [&] { return Parts::make(comm, nodes, edges, options); })) {}

HostGraph::HostGraph(const Communicator& comm, const std::vector<LocalNodeType>& nodes,
                     const std::vector<LocalEdgeType>& edges, const GraphOptions& options)
    : HostGraph(collective(
          comm, [&] { return checked(comm, nodes, edges); },
          [&] { return Parts::make(comm, nodes, edges, options); })) {}

const PartitionBook& HostGraph::src_book() const {
  return topology().src_book;
}

const PartitionBook& HostGraph::dst_book() const {
  return topology().dst_book;
}

Index HostGraph::num_given_edges() const noexcept {
  Index sum = 0;
  for (const HostEdgeOrder& order : *orders_) sum += order.num_given;
  return sum;
}

Index HostGraph::num_given_edges(const EdgeType& type) const {
  return (*orders_)[find_edge_type(edge_types(), type.canonical_name())].num_given;
}

Tensor HostGraph::to_graph_order(const Tensor& rows, const Tensor& reverse_rows) const {
  const Graph& graph = relation();  // throws if there are several
  return orders_->front().to_graph_order(graph, rows, reverse_rows);
}

Tensor HostGraph::to_host_order(const Tensor& rows, bool reverse) const {
  const Graph& graph = relation();
  return orders_->front().to_host_order(graph, rows, reverse);
}

Tensor HostGraph::to_graph_order(const EdgeType& type, const Tensor& rows, const Tensor& reverse_rows) const {
  return comm().agree([&] {
    const CallScope compared(
        comm(), CollectiveCall("HostGraph::to_graph_order").equal("edge type", type.canonical_name()));
    const std::size_t k = find_edge_type(edge_types(), type.canonical_name());
    return (*orders_)[k].to_graph_order((*this)[type], rows, reverse_rows);
  });
}

Tensor HostGraph::to_host_order(const EdgeType& type, const Tensor& rows, bool reverse) const {
  return comm().agree([&] {
    const CallScope compared(
        comm(), CollectiveCall("HostGraph::to_host_order").equal("edge type", type.canonical_name()));
    const std::size_t k = find_edge_type(edge_types(), type.canonical_name());
    return (*orders_)[k].to_host_order((*this)[type], rows, reverse);
  });
}
}}  // namespace sar
