// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/options.hpp>
#include <sar/bindings/c/status.hpp>

#include <algorithm>
#include <optional>
#include <type_traits>

using namespace sar;
using namespace sar::c_interface;

namespace {

template <class Id>
HostEdges<Id> edges_of(std::int64_t num_edges, const Id* src, const Id* dst, const std::int64_t* edge_ids,
                       const sar_array* edge_weight) {
  HostEdges<Id> edges{.src = list_of(src, num_edges, "src"), .dst = list_of(dst, num_edges, "dst")};
  if (edge_ids != nullptr) edges.ids = list_of(edge_ids, num_edges, "edge_ids");
  const Tensor weight = read_optional_array(edge_weight, {"edge_weight", num_edges, 1});
  if (weight.defined()) edges.weight = weight.reshape({num_edges});
  return edges;
}

/// A graph as the program gives it: ids of its nodes and edges.
struct GlobalParts {
  std::int64_t num_nodes;
  const std::int64_t* node_ids;
  std::int64_t num_edges;
  const std::int64_t *src, *dst, *edge_ids;
  const sar_array* edge_weight;

  [[nodiscard]] HostGraph make(const Communicator& comm, const HostGraphOptions& options) const {
    return {comm, list_of(node_ids, num_nodes, "node_ids"),
            edges_of(num_edges, src, dst, edge_ids, edge_weight), options};
  }
};

/// The same in the rank's own numbering.
struct LocalParts {
  std::int64_t num_owned, num_local;
  const std::int64_t* global_ids;
  std::int64_t num_edges;
  const std::int32_t *src, *dst;
  const std::int64_t* edge_ids;
  const sar_array* edge_weight;

  [[nodiscard]] HostGraph make(const Communicator& comm, const HostGraphOptions& options) const {
    require<InputError>(0 <= num_owned && num_owned <= num_local, "the rank owns ", num_owned, " of ",
                        num_local, " nodes, expected a number from 0 to ", num_local);
    const LocalToGlobal nodes{.num_owned = num_owned,
                              .global_ids = list_of(global_ids, num_local, "global_ids")};
    return {comm, nodes, edges_of(num_edges, src, dst, edge_ids, edge_weight), options};
  }
};

template <class Parts>
int make_graph(const char* name, sar_comm comm, const Parts& parts, const char* options, sar_graph* graph) {
  return make_object(name, {{comm, "comm"}}, graph, [&](const Communicator& c) {
    object<CommObject>(comm, "comm");
    const HostGraphOptions its = options == nullptr ? HostGraphOptions{} : graph_options(options);
    return std::make_shared<GraphObject>(c, parts.make(c, its), its);
  });
}

/// Rebuilds a graph. The object changes only after all ranks have built the new graph.
template <class Parts>
int rebuild_graph(const char* name, sar_graph graph, const Parts& parts) {
  std::shared_ptr<GraphObject> found;
  std::optional<HostGraph> made;
  const int status = collective_call(name, {{graph, "graph"}}, [&](const Communicator& c) {
    found = object<GraphObject>(graph, "graph");
    made = parts.make(c, found->options);
  });
  if (status != SAR_OK) return status;
  static_assert(std::is_nothrow_move_assignable_v<HostGraph>);
  found->graph = *std::move(made);
  ++found->num_rebuilds;
  return SAR_OK;
}

}  // namespace

int sar_graph_from_global(sar_comm comm, int64_t num_nodes, const int64_t* node_ids, int64_t num_edges,
                          const int64_t* src, const int64_t* dst, const int64_t* edge_ids,
                          const sar_array* edge_weight, const char* options, sar_graph* graph) {
  const GlobalParts parts{num_nodes, node_ids, num_edges, src, dst, edge_ids, edge_weight};
  return make_graph("sar_graph_from_global", comm, parts, options, graph);
}

int sar_graph_from_local(sar_comm comm, int64_t num_owned, int64_t num_local, const int64_t* global_ids,
                         int64_t num_edges, const int32_t* src, const int32_t* dst, const int64_t* edge_ids,
                         const sar_array* edge_weight, const char* options, sar_graph* graph) {
  const LocalParts parts{num_owned, num_local, global_ids, num_edges, src, dst, edge_ids, edge_weight};
  return make_graph("sar_graph_from_local", comm, parts, options, graph);
}

int sar_graph_rebuild_from_global(sar_graph graph, int64_t num_nodes, const int64_t* node_ids,
                                  int64_t num_edges, const int64_t* src, const int64_t* dst,
                                  const int64_t* edge_ids, const sar_array* edge_weight) {
  const GlobalParts parts{num_nodes, node_ids, num_edges, src, dst, edge_ids, edge_weight};
  return rebuild_graph("sar_graph_rebuild_from_global", graph, parts);
}

int sar_graph_rebuild_from_local(sar_graph graph, int64_t num_owned, int64_t num_local,
                                 const int64_t* global_ids, int64_t num_edges, const int32_t* src,
                                 const int32_t* dst, const int64_t* edge_ids, const sar_array* edge_weight) {
  const LocalParts parts{num_owned, num_local, global_ids, num_edges, src, dst, edge_ids, edge_weight};
  return rebuild_graph("sar_graph_rebuild_from_local", graph, parts);
}

int sar_graph_sizes(sar_graph graph, int64_t* nodes, int64_t* edges, int64_t* given_edges) {
  return call([&] {
    const HostGraph& g = object<GraphObject>(graph, "graph")->graph;
    if (nodes != nullptr) *nodes = g.num_nodes();
    if (edges != nullptr) *edges = g.num_edges();
    if (given_edges != nullptr) *given_edges = g.num_given_edges();
  });
}

int sar_graph_global_sizes(sar_graph graph, int64_t* nodes, int64_t* edges) {
  return call([&] {
    const HostGraph& g = object<GraphObject>(graph, "graph")->graph;
    if (nodes != nullptr) *nodes = g.num_global_nodes();
    if (edges != nullptr) *edges = g.num_global_edges();
  });
}

int sar_graph_edge_ids(sar_graph graph, int64_t length, int64_t* edge_ids) {
  return call([&] {
    const std::shared_ptr<GraphObject> found = object<GraphObject>(graph, "graph");
    const Array<Index>& ids = found->graph.edge_ids();
    const std::span<std::int64_t> out = list_of(edge_ids, length, "edge_ids");
    require<ShapeError>(length == std::ssize(ids), "'edge_ids' has room for ", length,
                        " numbers, expected that for ", ids.size(), ", the edges of the rank");
    std::copy(ids.begin(), ids.end(), out.begin());
  });
}

int sar_graph_edges_to_graph_order(sar_graph graph, const sar_array* rows, const sar_array* reverse_rows,
                                   sar_array* out) {
  return collective_call("sar_graph_edges_to_graph_order", {{graph, "graph"}}, [&](const Communicator&) {
    const HostGraph& g = object<GraphObject>(graph, "graph")->graph;
    const Tensor given = read_array(rows, {"rows", g.num_given_edges(), -1});
    const Tensor reverse =
        read_optional_array(reverse_rows, {"reverse_rows", g.num_given_edges(), given.row_size()});
    check_array(out, {"out", g.num_edges(), given.row_size()});
    write_array(g.to_graph_order(given, reverse), *out);
  });
}

int sar_graph_edges_to_given_order(sar_graph graph, const sar_array* rows, int32_t reverse, sar_array* out) {
  return collective_call("sar_graph_edges_to_given_order", {{graph, "graph"}}, [&](const Communicator&) {
    const HostGraph& g = object<GraphObject>(graph, "graph")->graph;
    const Tensor in_graph_order = read_array(rows, {"rows", g.num_edges(), -1});
    check_array(out, {"out", g.num_given_edges(), in_graph_order.row_size()});
    write_array(g.to_host_order(in_graph_order, reverse != 0), *out);
  });
}

int sar_graph_free(sar_graph graph) {
  return free_object<GraphObject>(graph, "graph");
}
