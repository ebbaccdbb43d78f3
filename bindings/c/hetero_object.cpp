// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/hetero_object.hpp>
#include <sar/bindings/c/options.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/graph/message/agreement.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

using namespace sar;
using namespace sar::c_interface;

namespace sar { inline namespace SAR_PRECISION {
namespace c_interface {

const HostGraph& built(const HeteroObject& hetero) {
  require<InputError>(hetero.graph.has_value(),
                      "the graph has no nodes, expected a call of sar_hetero_build() before");
  return *hetero.graph;
}

Index num_nodes_of(const HeteroObject& hetero, const std::string& type) {
  const HostGraph& graph = built(hetero);
  require<InputError>(std::ranges::count(graph.node_types(), type) == 1, "there is no node type '", type,
                      "', expected ", joined(graph.node_types()));
  return graph.num_nodes(type);
}

void add_arguments(CollectiveCall& call, const HeteroObject& hetero) {
  const HostGraph& graph = built(hetero);
  const auto nodes = [&](const std::string& type) { return concat(type, ' ', graph.num_global_nodes(type)); };
  const auto edges = [&](const EdgeType& type) {
    return concat(type.canonical_name(), ' ', graph[type].num_global_edges());
  };
  call.equal("number of nodes of the graph", joined(graph.node_types(), nodes))
      .equal("number of edges of the graph", joined(graph.edge_types(), edges));
}

}  // namespace c_interface
}}  // namespace sar

namespace {

/// Changes a graph after all ranks have computed the new state: make(hetero, call) returns a T that `take`
/// moves into the object.
template <class Make, class Take>
int change(const char* name, sar_hetero graph, const Make& make, const Take& take) {
  std::shared_ptr<HeteroObject> found;
  using Made = std::invoke_result_t<const Make&, HeteroObject&, const Communicator&, CollectiveCall&>;
  std::optional<Made> made;
  const int status =
      collective_call(name, {{graph, "graph"}}, [&](const Communicator& comm, CollectiveCall& call) {
        found = object<HeteroObject>(graph, "graph");
        made.emplace(make(*found, comm, call));
      });
  if (status == SAR_OK) take(*found, *std::move(made));
  return status;
}

const auto take_added = [](HeteroObject& hetero, AddedTypes added) { hetero.added = std::move(added); };

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

}  // namespace

int sar_hetero_create(sar_comm comm, const char* options, sar_hetero* graph) {
  return make_object(
      "sar_hetero_create", {{comm, "comm"}}, graph, [&](const Communicator& c, CollectiveCall& call) {
        object<CommObject>(comm, "comm");
        const HostGraphOptions its = options == nullptr ? HostGraphOptions{} : graph_options(options);
        require<InputError>(!its.add_reverse_edges,
                            "the options of the graph have add_reverse_edges, expected it as "
                            "an argument of sar_hetero_add_edges()");
        call.equal(its.graph);
        return std::make_shared<HeteroObject>(c, its.graph);
      });
}

int sar_hetero_add_nodes(sar_hetero graph, const char* type, int64_t num_nodes, const int64_t* node_ids) {
  const auto make = [&](const HeteroObject& hetero, const Communicator&, CollectiveCall& call) {
    const std::string name = text_of(type, "type");
    call.equal("node type", name);
    require<InputError>(!name.empty(), "the text 'type' is empty, expected the name of a node type");
    for (const auto& each : hetero.added.nodes)
      require<InputError>(each->type != name, "the nodes of type '", name,
                          "' are added twice, expected one call for each type");
    AddedTypes added = hetero.added;
    added.nodes.push_back(
        std::make_shared<const AddedNodes>(AddedNodes{name, copy_of(node_ids, num_nodes, "node_ids")}));
    return added;
  };
  return change("sar_hetero_add_nodes", graph, make, take_added);
}

int sar_hetero_add_edges(sar_hetero graph, const char* source, const char* relation, const char* destination,
                         int64_t num_edges, const int64_t* src, const int64_t* dst, const int64_t* edge_ids,
                         const sar_array* edge_weight, int32_t add_reverse_edges) {
  const auto make = [&](const HeteroObject& hetero, const Communicator&, CollectiveCall& call) {
    AddedEdges edges{.type = edge_type_of(source, relation, destination),
                     .src = copy_of(src, num_edges, "src"),
                     .dst = copy_of(dst, num_edges, "dst"),
                     .ids = {},
                     .weight = {},
                     .add_reverse_edges = add_reverse_edges != 0};
    call.equal("edge type", edges.type.canonical_name())
        .equal("choice of add_reverse_edges", edges.add_reverse_edges);
    for (const auto& each : hetero.added.edges)
      require<InputError>(each->type != edges.type, "the edges of type '", edges.type.canonical_name(),
                          "' are added twice, expected one call for each type");
    if (edge_ids != nullptr) edges.ids = copy_of(edge_ids, num_edges, "edge_ids");
    const Tensor weight = read_optional_array(edge_weight, {"edge_weight", num_edges, 1});
    if (weight.defined()) edges.weight = weight.clone().reshape({num_edges});
    AddedTypes added = hetero.added;
    added.edges.push_back(std::make_shared<const AddedEdges>(std::move(edges)));
    return added;
  };
  return change("sar_hetero_add_edges", graph, make, take_added);
}

int sar_hetero_build(sar_hetero graph) {
  const auto make = [](const HeteroObject& hetero, const Communicator& comm, CollectiveCall&) {
    require<InputError>(!hetero.added.nodes.empty() && !hetero.added.edges.empty(), "there are ",
                        hetero.added.nodes.size(), " node types and ", hetero.added.edges.size(),
                        " edge types since the last sar_hetero_build(), expected sar_hetero_add_nodes() and "
                        "sar_hetero_add_edges() before");
    return made_from(hetero.added, comm, hetero.options);
  };
  static_assert(std::is_nothrow_move_constructible_v<HostGraph>);
  return change("sar_hetero_build", graph, make, [](HeteroObject& hetero, HostGraph made) {
    hetero.graph.emplace(std::move(made));
    hetero.rows.clear();
    hetero.added = {};
  });
}

int sar_hetero_num_nodes(sar_hetero graph, const char* type, int64_t* nodes, int64_t* global_nodes) {
  return call([&] {
    const auto found = object<HeteroObject>(graph, "graph");
    const std::string name = text_of(type, "type");
    const Index own = num_nodes_of(*found, name);
    if (nodes != nullptr) *nodes = own;
    if (global_nodes != nullptr) *global_nodes = found->graph->num_global_nodes(name);
  });
}

int sar_hetero_num_edges(sar_hetero graph, const char* source, const char* relation, const char* destination,
                         int64_t* edges, int64_t* global_edges) {
  return call([&] {
    const auto found = object<HeteroObject>(graph, "graph");
    const Graph& of_type = built(*found)[edge_type_of(source, relation, destination).canonical_name()];
    if (edges != nullptr) *edges = of_type.num_edges();
    if (global_edges != nullptr) *global_edges = of_type.num_global_edges();
  });
}

int sar_hetero_set_rows(sar_hetero graph, const char* type, const sar_array* x) {
  using Rows = std::map<std::string, Tensor>;
  const auto make = [&](const HeteroObject& hetero, const Communicator&, CollectiveCall& call) {
    const std::string name = text_of(type, "type");
    call.equal("node type", name).equal(hetero);
    Rows rows = hetero.rows;
    rows[name] = read_array(x, {"x", num_nodes_of(hetero, name), -1}).clone();
    call.equal("number of fields", rows[name].row_size());
    return rows;
  };
  return change("sar_hetero_set_rows", graph, make,
                [](HeteroObject& hetero, Rows rows) { hetero.rows = std::move(rows); });
}

int sar_hetero_free(sar_hetero graph) {
  return free_object<HeteroObject>(graph, "graph");
}
