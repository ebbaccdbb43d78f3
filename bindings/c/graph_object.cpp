// SPDX-License-Identifier: MIT
#include <sar/bindings/c/graph_object.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/model_type.hpp>
#include <sar/nn/models/relations.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

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
