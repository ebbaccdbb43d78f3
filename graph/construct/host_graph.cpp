// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/graph/hetero/graph_types.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/shard/graph_shard.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// Converts a host's nodes and edges to those of a graph, and edge rows between both orders.

/// The mapping between the order in which a host gave its edges and their order in a graph.
struct HostEdgeOrder {
  Index num_given = 0;
  bool reversed = false;
  RowRoute route;                ///< of the given edges, followed by their reverse edges
  Array<std::int32_t> places{};  ///< position in the graph's order of each received edge

  /// Collective. Implements HostGraph::to_graph_order.
  [[nodiscard]] Tensor to_graph_order(const Graph& graph, const Tensor& rows,
                                      const Tensor& reverse_rows) const {
    return graph.comm().agree([&] {
      const Index given = num_given;
      const bool both = reverse_rows.defined();
      require<ShapeError>(rows.defined() && rows.num_rows() == given, "to_graph_order: rows of shape ",
                          rows.shape(), " on rank ", graph.comm().rank(), ", which gave ", given, " edges");
      require<ShapeError>(!both || (reversed && reverse_rows.shape() == rows.shape()),
                          "to_graph_order: rows of shape ", rows.shape(), " and reverse rows of shape ",
                          reverse_rows.shape(), " on rank ", graph.comm().rank(),
                          reversed ? ", expected the same shape" : ", but there are no reverse edges");
      graph.comm().require_equal(CollectiveCall("to_graph_order")
                                     .equal("shape of a row", rows.shape())
                                     .equal("choice of reverse rows", both ? 1 : 0));
      Tensor sent = rows;
      if (reversed) {
        sent = Tensor(rows.shape().with_rows(2 * given));
        sent.slice_rows(0, given).copy_from(rows);
        sent.slice_rows(given, 2 * given).copy_from(both ? reverse_rows : rows);
      }
      const Tensor arrived = route.forward(sent);
      Tensor ordered(arrived.shape());
      parallel_for_each(graph.num_edges(), edges_per_task, [&](Index i) {
        std::copy_n(arrived.row(i), arrived.row_size(), ordered.row(places[i]));
      });
      return ordered;
    });
  }

  /// Collective. Implements HostGraph::to_host_order.
  [[nodiscard]] Tensor to_host_order(const Graph& graph, const Tensor& rows, bool reverse) const {
    return graph.comm().agree([&] {
      const Index given = num_given;
      require<ShapeError>(rows.defined() && rows.num_rows() == graph.num_edges(),
                          "to_host_order: rows of shape ", rows.shape(), " on rank ", graph.comm().rank(),
                          ", which has ", graph.num_edges(), " edges of the graph");
      require<InputError>(reversed || !reverse,
                          "to_host_order: reverse rows are asked for, but there are no reverse edges");
      graph.comm().require_equal(CollectiveCall("to_host_order")
                                     .equal("shape of a row", rows.shape())
                                     .equal("choice of reverse rows", reverse ? 1 : 0));
      Tensor arrived(rows.shape());
      parallel_for_each(graph.num_edges(), edges_per_task,
                        [&](Index i) { std::copy_n(rows.row(places[i]), rows.row_size(), arrived.row(i)); });
      Tensor back = route.back(arrived);
      return reversed ? back.slice_rows(reverse ? given : 0, reverse ? 2 * given : given) : back;
    });
  }
};

// Construction of host graphs: translates the ends of the given edges to global ids (edge_exchange.hpp),
// assigns edge ids, appends reverse edges, and sends all columns to the owners of the destinations by one
// RowRoute. The same route later carries edge rows in both directions.

namespace {

/// Returns the position in `order` of each id; both lists contain the same distinct ids. Uses an array over
/// the range of ids if they are dense, and a hash table otherwise.
Array<std::int32_t> places_of(const Array<Index>& ids, const Array<Index>& order) {
  Array<std::int32_t> places(ids.size());
  if (ids.empty()) return places;
  const auto size = static_cast<Index>(order.size());
  const auto for_all = [&](const auto& body) { parallel_for_each(size, edges_per_task, body); };
  const auto [smallest, largest] = std::minmax_element(ids.begin(), ids.end());
  if (const Index first = *smallest; *largest - first < 4 * size) {
    Array<std::int32_t> by_id(*largest - first + 1);
    for_all([&](Index e) { by_id[order[e] - first] = static_cast<std::int32_t>(e); });
    for_all([&](Index i) { places[i] = by_id[ids[i] - first]; });
  } else {
    IdTable table(size);
    for (Index e = 0; e < size; ++e) table.insert(order[e], e);
    for_all([&](Index i) { places[i] = static_cast<std::int32_t>(table.find(ids[i])); });
  }
  return places;
}

/// Edges after their redistribution to the owners of their destinations.
struct BroughtEdges {
  EdgeList edges;
  Array<Index> arrived;  ///< ids of the received edges
  HostEdgeOrder order;   ///< places are not set yet

  /// Local. Computes order.places.
  void find_places(const Array<Index>& edge_ids) { order.places = places_of(arrived, edge_ids); }
};

/// Returns the edges of this rank in global ids, reverse edges last. Collective.
template <class Nodes, class Id>
EdgeList host_edges(const Communicator& comm, const HostNodes<Nodes>& src, const HostNodes<Nodes>& dst,
                    const HostEdges<Id>& edges, bool weighted, bool add_reverse) {
  EdgeList list;
  if (&src == &dst) {
    const EndColumn<Id> both[]{{edges.src, list.src, "comes from"}, {edges.dst, list.dst, "goes to"}};
    find_ends(comm, src, edges, std::span<const EndColumn<Id>>(both));
  } else {
    const EndColumn<Id> from[]{{edges.src, list.src, "comes from"}}, to[]{{edges.dst, list.dst, "goes to"}};
    find_ends(comm, src, edges, std::span<const EndColumn<Id>>(from));
    find_ends(comm, dst, edges, std::span<const EndColumn<Id>>(to));
  }
  comm.agree([&] {
    if (weighted) list.weight.assign(edges.weight.values().begin(), edges.weight.values().end());
  });

  const bool named = comm.all_reduce(edges.ids.empty() ? 0 : 1, ReduceOp::max) == 1;
  comm.agree([&] {
    require<InputError>(!named || edges.ids.size() == edges.src.size(), "HostGraph: rank ", comm.rank(),
                        " gives ", edges.src.size(), " edges without ids, other ranks give ids");
    list.id.assign(edges.ids.begin(), edges.ids.end());
  });
  Index next_id = 0;
  if (named) {
    require_unique_ids(comm, edges.ids, "HostGraph: ids of edges");
    next_id = 1 + comm.all_reduce(list.id.empty() ? -1 : *std::max_element(list.id.begin(), list.id.end()),
                                  ReduceOp::max);
  } else {
    const PartitionBook ids = gather_book(comm, static_cast<Index>(edges.src.size()));
    next_id = ids.num_nodes();
    list.id = consecutive(ids.begin(comm.rank()), edges.src.size());
  }

  if (add_reverse) comm.agree([&] { append_reverse(next_id, list); });
  return list;
}

RowRoute route_to_owners(const Communicator& comm, const PartitionBook& book, const EdgeList& edges) {
  Array<std::int32_t> owners;
  comm.agree([&] {
    owners.resize(edges.dst.size());
    parallel_for_each(edges.size(), edges_per_task, [&](Index k) { owners[k] = book.owner(edges.dst[k]); });
  });
  return {comm, owners};
}

/// Sends the columns of `edges` to the owners of the destinations; frees each column once it is sent.
/// Collective.
EdgeList bring(const RowRoute& route, EdgeList edges, bool weighted) {
  const auto bring_column = [&]<class T>(Array<T>& column) {
    return route.forward(std::span<const T>(std::exchange(column, {})));
  };
  EdgeList mine;
  mine.src = bring_column(edges.src);
  mine.dst = bring_column(edges.dst);
  mine.id = bring_column(edges.id);
  if (weighted) mine.weight = bring_column(edges.weight);
  return mine;
}

/// Local. Check the arrays of a rank. Throw ShapeError or InputError.
void check_host_nodes(const Communicator&, std::span<const Index>, const char*) {}
void check_host_nodes(const Communicator& comm, const LocalToGlobal& nodes, const char* what) {
  require<ShapeError>(0 <= nodes.num_owned && nodes.num_owned <= static_cast<Index>(nodes.global_ids.size()),
                      "HostGraph: rank ", comm.rank(), " owns ", nodes.num_owned, " ", what,
                      "s (num_owned) and gives ", nodes.global_ids.size(),
                      " global_ids, expected one for each ", what, " and each ghost");
}

template <class Id>
void check_host_edges(const Communicator& comm, const HostEdges<Id>& edges) {
  const int rank = comm.rank();
  const std::size_t size = edges.src.size();
  require<ShapeError>(edges.dst.size() == size, "HostGraph: rank ", rank, " gives ", size,
                      " sources of edges (src) and ", edges.dst.size(),
                      " destinations (dst), expected as many");
  require<ShapeError>(edges.ids.empty() || edges.ids.size() == size, "HostGraph: rank ", rank, " gives ",
                      size, " edges (src, dst) and ", edges.ids.size(), " ids, expected as many or none");
  require<ShapeError>(!edges.weight.defined() || edges.weight.shape() == Shape{static_cast<Index>(size)},
                      "HostGraph: rank ", rank, " gives ", size, " edges (src, dst) and weights of shape ",
                      edges.weight.shape(), ", expected [", size, "] or none");
  for (std::size_t k = 0; k < edges.ids.size(); ++k)
    require<InputError>(0 <= edges.ids[k] && edges.ids[k] < Index{1} << 61, "HostGraph: edge ", k,
                        " of rank ", rank, " has the id ", edges.ids[k], ", expected 0 to 2^61 - 1");
}

/// Collective. Computes the global ids of the edges' ends and sends the edges and their weights to the
/// owners of their destinations, reverse edges last. If `src` and `dst` are the same object, they are one
/// set of nodes. Throws as HostGraph.
template <class Nodes, class Id>
BroughtEdges bring_host_edges(const Communicator& comm, const HostNodes<Nodes>& src,
                              const HostNodes<Nodes>& dst, const HostEdges<Id>& edges, bool add_reverse) {
  const bool weighted = comm.all_reduce(edges.weight.defined() ? 1 : 0, ReduceOp::max) == 1;
  require<InputError>(!weighted || edges.weight.defined() || edges.src.empty(), "HostGraph: rank ",
                      comm.rank(), " gives ", edges.src.size(),
                      " edges without weights, other ranks give weights");
  EdgeList list = host_edges(comm, src, dst, edges, weighted && !edges.src.empty(), add_reverse);
  const RowRoute route = route_to_owners(comm, dst.book, list);
  list = bring(route, std::move(list), weighted);
  Array<Index> arrived = list.id;
  return {
      .edges = std::move(list),
      .arrived = std::move(arrived),
      .order = {.num_given = static_cast<Index>(edges.src.size()), .reversed = add_reverse, .route = route}};
}

/// Collective. Returns the nodes of one end of the edges, which may also be those of the other end; `nodes`
/// must outlive the result. Each rank owns the nodes that it gives.
template <class Nodes>
HostNodes<Nodes> host_nodes(const Communicator& comm, const Nodes& nodes, const char* what) {
  return {nodes, what, gather_book(comm, static_cast<Index>(own_nodes(nodes).size()))};
}

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
        throw InputError(concat("edge type '", type, "': there is no node type '", end,
                                "'; the node types are ", quoted_list(names)));
    naming(type, [&] { check_host_edges(comm, each.edges); });
    require<InputError>(!each.add_reverse_edges || type.source == type.destination, "edge type '", type,
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

template <class Use>
Tensor HostGraph::of_type(const char* call, const EdgeType& type, const Use& use) const {
  return comm().agree([&] {
    const CallScope compared(comm(), CollectiveCall(call).equal("edge type", type.canonical_name()));
    const std::size_t k = find_edge_type(edge_types(), type.canonical_name());
    return use((*orders_)[k], (*this)[type]);
  });
}

Tensor HostGraph::to_graph_order(const EdgeType& type, const Tensor& rows, const Tensor& reverse_rows) const {
  return of_type("HostGraph::to_graph_order", type, [&](const HostEdgeOrder& order, const Graph& graph) {
    return order.to_graph_order(graph, rows, reverse_rows);
  });
}

Tensor HostGraph::to_host_order(const EdgeType& type, const Tensor& rows, bool reverse) const {
  return of_type("HostGraph::to_host_order", type, [&](const HostEdgeOrder& order, const Graph& graph) {
    return order.to_host_order(graph, rows, reverse);
  });
}
}}  // namespace sar
