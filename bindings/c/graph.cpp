// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/graph.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/nn/models/model_type.hpp>
#include <sar/nn/models/relations.hpp>

#include <algorithm>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

namespace c_interface {

const HostGraph& GraphObject::built() const {
  require<InputError>(graph.has_value(),
                      "the graph has no nodes, expected a call of sar_graph_build() before");
  return *graph;
}

std::string GraphObject::node_type(const char* type) const {
  const std::vector<std::string>& types = built().node_types();
  if (type == nullptr && types.size() == 1) return types.front();
  if (type == nullptr)
    throw InputError(concat("the argument 'type' is null for a graph of the node types ", joined(types),
                            ", expected one of them"));
  if (std::ranges::count(types, type) != 1)
    throw InputError(concat("there is no node type '", type, "', expected ", joined(types)));
  return type;
}

EdgeType GraphObject::edge_type(const char* type) const {
  const std::vector<EdgeType>& types = built().edge_types();
  if (type != nullptr) return types[find_edge_type(types, type)];
  if (types.size() == 1) return types.front();
  throw InputError(concat("the argument 'edge_type' is null for a graph of the edge types ",
                          joined(types, &EdgeType::canonical_name), ", expected one of them"));
}

void GraphObject::take(HostGraph made) noexcept {
  static_assert(std::is_nothrow_move_constructible_v<HostGraph>);
  graph.emplace(std::move(made));
  rows.clear();
  added = {};
  ++num_rebuilds;
}

void add_arguments(CollectiveCall& call, const GraphObject& object) {
  const HostGraph& graph = object.built();
  const auto nodes = [&](const std::string& type) { return concat(type, ' ', graph.num_global_nodes(type)); };
  const auto edges = [&](const EdgeType& type) {
    return concat(type.canonical_name(), ' ', graph[type].num_global_edges());
  };
  call.equal("number of nodes of the graph", joined(graph.node_types(), nodes))
      .equal("number of edges of the graph", joined(graph.edge_types(), edges));
}

void require_types(const ModelObject& model, const GraphObject& object) {
  const HostGraph& graph = object.built();
  const ModelType& type = model_type(model.plan.type);
  require_types(model.plan, graph);
  if (!type.has_relations && graph.node_types().size() != 1)
    throw InputError(concat("a network of type ", type.name, ", which reads no relations, on a graph of the ",
                            "node types ", joined(graph.node_types()), ", expected one node type"));
}

}  // namespace c_interface
}}  // namespace sar

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
    const auto made =
        std::make_shared<GraphObject>(c, options == nullptr ? HostGraphOptions{} : graph_options(options));
    made->take(parts.make(c, made->options));
    return made;
  });
}

/// Changes a graph after all ranks have computed the new state: make(object, comm, call) returns a T that
/// `take` moves into the object.
template <class Make, class Take>
int change(const char* name, sar_graph graph, const Make& make, const Take& take) {
  std::shared_ptr<GraphObject> found;
  using Made = std::invoke_result_t<const Make&, GraphObject&, const Communicator&, CollectiveCall&>;
  std::optional<Made> made;
  const int status =
      collective_call(name, {{graph, "graph"}}, [&](const Communicator& comm, CollectiveCall& call) {
        found = object<GraphObject>(graph, "graph");
        made.emplace(make(*found, comm, call));
      });
  if (status == SAR_OK) take(*found, *std::move(made));
  return status;
}

const auto take_added = [](GraphObject& its, AddedTypes added) { its.added = std::move(added); };
const auto take_graph = [](GraphObject& its, HostGraph made) { its.take(std::move(made)); };

EdgeType edge_type_of(const char* source, const char* relation, const char* destination) {
  return {text_of(source, "source"), text_of(relation, "relation"), text_of(destination, "destination")};
}

std::vector<std::int64_t> copy_of(const std::int64_t* values, std::int64_t length, const char* name) {
  const std::span<const std::int64_t> list = list_of(values, length, name);
  return {list.begin(), list.end()};
}

HostGraph made_from(const AddedTypes& added, const Communicator& comm, const GraphOptions& options) {
  std::vector<GlobalNodeType> nodes;
  std::vector<GlobalEdgeType> edges;
  for (const auto& each : added.nodes) nodes.push_back({each->type, each->ids});
  for (const auto& each : added.edges) {
    GlobalEdges lists{.src = each->src, .dst = each->dst, .weight = each->weight};
    if (each->ids) lists.ids = *each->ids;
    edges.push_back({each->type, std::move(lists), each->add_reverse_edges});
  }
  return {comm, nodes, edges, options};
}

/// Rebuilds a graph of one type.
template <class Parts>
int rebuild_graph(const char* name, sar_graph graph, const Parts& parts) {
  return change(
      name, graph,
      [&](const GraphObject& its, const Communicator& comm, CollectiveCall&) {
        return parts.make(comm, its.options);
      },
      take_graph);
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

int sar_graph_create(sar_comm comm, const char* options, sar_graph* graph) {
  return make_object(
      "sar_graph_create", {{comm, "comm"}}, graph, [&](const Communicator& c, CollectiveCall& call) {
        object<CommObject>(comm, "comm");
        const HostGraphOptions its = options == nullptr ? HostGraphOptions{} : graph_options(options);
        require<InputError>(!its.add_reverse_edges,
                            "the options of the graph have add_reverse_edges, expected it as "
                            "an argument of sar_graph_add_edges()");
        call.equal(its.graph);
        return std::make_shared<GraphObject>(c, its);
      });
}

int sar_graph_add_nodes(sar_graph graph, const char* type, int64_t num_nodes, const int64_t* node_ids) {
  const auto make = [&](const GraphObject& its, const Communicator&, CollectiveCall& call) {
    const std::string name = text_of(type, "type");
    call.equal("node type", name);
    require<InputError>(!name.empty(), "the text 'type' is empty, expected the name of a node type");
    for (const auto& each : its.added.nodes)
      require<InputError>(each->type != name, "the nodes of type '", name,
                          "' are added twice, expected one call for each type");
    AddedTypes added = its.added;
    added.nodes.push_back(
        std::make_shared<const AddedNodes>(AddedNodes{name, copy_of(node_ids, num_nodes, "node_ids")}));
    return added;
  };
  return change("sar_graph_add_nodes", graph, make, take_added);
}

int sar_graph_add_edges(sar_graph graph, const char* source, const char* relation, const char* destination,
                        int64_t num_edges, const int64_t* src, const int64_t* dst, const int64_t* edge_ids,
                        const sar_array* edge_weight, int32_t add_reverse_edges) {
  const auto make = [&](const GraphObject& its, const Communicator&, CollectiveCall& call) {
    AddedEdges edges{.type = edge_type_of(source, relation, destination),
                     .src = copy_of(src, num_edges, "src"),
                     .dst = copy_of(dst, num_edges, "dst"),
                     .ids = {},
                     .weight = {},
                     .add_reverse_edges = add_reverse_edges != 0};
    call.equal("edge type", edges.type.canonical_name())
        .equal("choice of add_reverse_edges", edges.add_reverse_edges);
    for (const auto& each : its.added.edges)
      require<InputError>(each->type != edges.type, "the edges of type '", edges.type,
                          "' are added twice, expected one call for each type");
    if (edge_ids != nullptr) edges.ids = copy_of(edge_ids, num_edges, "edge_ids");
    const Tensor weight = read_optional_array(edge_weight, {"edge_weight", num_edges, 1});
    if (weight.defined()) edges.weight = weight.clone().reshape({num_edges});
    AddedTypes added = its.added;
    added.edges.push_back(std::make_shared<const AddedEdges>(std::move(edges)));
    return added;
  };
  return change("sar_graph_add_edges", graph, make, take_added);
}

int sar_graph_build(sar_graph graph) {
  const auto make = [](const GraphObject& its, const Communicator& comm, CollectiveCall&) {
    require<InputError>(!its.added.nodes.empty() && !its.added.edges.empty(), "there are ",
                        its.added.nodes.size(), " node types and ", its.added.edges.size(),
                        " edge types since the last sar_graph_build(), expected sar_graph_add_nodes() and "
                        "sar_graph_add_edges() before");
    return made_from(its.added, comm, its.options.graph);
  };
  return change("sar_graph_build", graph, make, take_graph);
}

int sar_graph_num_nodes(sar_graph graph, const char* type, int64_t* nodes, int64_t* global_nodes) {
  return call([&] {
    const auto found = object<GraphObject>(graph, "graph");
    const HostGraph& g = found->built();
    const std::string name = type == nullptr ? "" : found->node_type(type);
    if (nodes != nullptr) *nodes = type == nullptr ? g.num_nodes() : g.num_nodes(name);
    if (global_nodes != nullptr)
      *global_nodes = type == nullptr ? g.num_global_nodes() : g.num_global_nodes(name);
  });
}

int sar_graph_num_edges(sar_graph graph, const char* edge_type, int64_t* edges, int64_t* global_edges,
                        int64_t* given_edges) {
  return call([&] {
    const auto found = object<GraphObject>(graph, "graph");
    const HostGraph& g = found->built();
    const bool all = edge_type == nullptr;
    const EdgeType type = all ? EdgeType() : found->edge_type(edge_type);
    const Graph of_type = all ? static_cast<const Graph&>(g) : g[type];
    if (edges != nullptr) *edges = of_type.num_edges();
    if (global_edges != nullptr) *global_edges = of_type.num_global_edges();
    if (given_edges != nullptr) *given_edges = all ? g.num_given_edges() : g.num_given_edges(type);
  });
}

int sar_graph_edge_ids(sar_graph graph, const char* edge_type, int64_t length, int64_t* edge_ids) {
  return call([&] {
    const auto found = object<GraphObject>(graph, "graph");
    const Graph of_type = found->built()[found->edge_type(edge_type)];
    const Array<Index>& ids = of_type.edge_ids();
    const std::span<std::int64_t> out = list_of(edge_ids, length, "edge_ids");
    require<ShapeError>(length == std::ssize(ids), "'edge_ids' has room for ", length,
                        " numbers, expected that for ", ids.size(), ", the edges of the rank");
    std::copy(ids.begin(), ids.end(), out.begin());
  });
}

int sar_graph_edges_to_graph_order(sar_graph graph, const char* edge_type, const sar_array* rows,
                                   const sar_array* reverse_rows, sar_array* out) {
  return collective_call("sar_graph_edges_to_graph_order", {{graph, "graph"}}, [&](const Communicator&) {
    const auto found = object<GraphObject>(graph, "graph");
    const EdgeType type = found->edge_type(edge_type);
    const HostGraph& g = found->built();
    const Index given_edges = g.num_given_edges(type);
    const Tensor given = read_array(rows, {"rows", given_edges, -1});
    const Tensor reverse = read_optional_array(reverse_rows, {"reverse_rows", given_edges, given.row_size()});
    check_array(out, {"out", g[type].num_edges(), given.row_size()});
    write_array(g.to_graph_order(type, given, reverse), *out);
  });
}

int sar_graph_edges_to_given_order(sar_graph graph, const char* edge_type, const sar_array* rows,
                                   int32_t reverse, sar_array* out) {
  return collective_call("sar_graph_edges_to_given_order", {{graph, "graph"}}, [&](const Communicator&) {
    const auto found = object<GraphObject>(graph, "graph");
    const EdgeType type = found->edge_type(edge_type);
    const HostGraph& g = found->built();
    const Tensor in_graph_order = read_array(rows, {"rows", g[type].num_edges(), -1});
    check_array(out, {"out", g.num_given_edges(type), in_graph_order.row_size()});
    write_array(g.to_host_order(type, in_graph_order, reverse != 0), *out);
  });
}

int sar_graph_set_rows(sar_graph graph, const char* type, const sar_array* x) {
  using Rows = std::map<std::string, Tensor>;
  const auto make = [&](const GraphObject& its, const Communicator&, CollectiveCall& call) {
    const std::string name = its.node_type(type);
    call.equal("node type", name).equal(its);
    Rows rows = its.rows;
    rows[name] = read_array(x, {"x", its.built().num_nodes(name), -1}).clone();
    call.equal("number of fields", rows[name].row_size());
    return rows;
  };
  return change("sar_graph_set_rows", graph, make,
                [](GraphObject& its, Rows rows) { its.rows = std::move(rows); });
}

int sar_graph_free(sar_graph graph) {
  return free_object<GraphObject>(graph, "graph");
}
