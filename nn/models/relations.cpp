// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/models/model_description.hpp>
#include <sar/nn/models/model_type.hpp>
#include <sar/nn/models/relations.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

void require_types(const ModelDescription& description, const Graph& graph) {
  const auto names = [](const std::vector<EdgeType>& types) {
    return joined(types, &EdgeType::canonical_name);
  };
  const std::vector<std::string>& nodes = graph.node_types();
  const std::vector<EdgeType>& edges = graph.edge_types();
  if (!model_type(description.type).has_relations) {
    if (edges.size() == 1) return;
    throw InputError(concat("a network of type ", description.type, ", which reads no relations, on a ",
                            "graph of the edge types ", names(edges),
                            ", expected one edge type, or a network of type ",
                            model_types_where([](const ModelType& type) { return type.has_relations; })));
  }
  if (nodes != description.node_types)
    throw InputError(concat("a network of type ", description.type, " on a graph of the node types ",
                            joined(nodes), ", expected ", joined(description.node_types)));
  if (edges != description.edge_types)
    throw InputError(concat("a network of type ", description.type, " on a graph of the edge types ",
                            names(edges), ", expected ", names(description.edge_types)));
}

GraphRelations relations_of(const Graph& graph, const ModelType& type) {
  const HomogeneousForm& form = graph.to_homogeneous();
  GraphRelations relations;
  relations.types = form.etypes;
  relations.averages_types = true;
  if (type.name == "rgcn")
    relations.norm = weighted_norm(relation_norm(form.graph, relations.types), form.graph);
  if (type.needs_types) relations.node_types = form.ntypes();
  if (type.by_relation) relations.graph = graph;
  return relations;
}

Tensor weighted_norm(Tensor norm, const Graph& graph) {
  const Tensor& weight = graph.edge_weight();
  if (!weight.defined()) return norm;
  std::transform(norm.data(), norm.data() + norm.size(), weight.data(), norm.data(), std::multiplies<>());
  return norm;
}

GraphRelations relations_of(const MessageFlowGraph& block, const GraphRelations& of_graph) {
  GraphRelations relations;
  if (of_graph.graph) {
    relations.block.emplace(*of_graph.graph, block);
    return relations;
  }
  relations.averages_types = of_graph.averages_types;
  Array<std::uint16_t> types;
  for (const Index e : block.edge_rows()) types.push_back(of_graph.types.numbers()[e]);
  relations.types = EdgeTypes(std::move(types));
  if (of_graph.norm.defined())
    relations.norm = weighted_norm(
        relations.averages_types ? relation_norm(block, relations.types) : relation_norm(block), block);
  if (!of_graph.node_types.empty())
    for (const Index v : block.src_rows()) relations.node_types.push_back(of_graph.node_types[v]);
  return relations;
}

}}  // namespace sar
