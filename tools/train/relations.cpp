#include "relations.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sar::tools {

Relations relations_of(const MessageFlowGraph& block, const Relations& of_graph) {
  Relations relations;
  if (of_graph.graph) {
    relations.block.emplace(*of_graph.graph, block);
    return relations;
  }
  relations.averages_types = of_graph.averages_types;
  Array<std::uint16_t> types;
  for (const Index e : block.edge_rows()) types.push_back(of_graph.types.numbers()[e]);
  relations.types = EdgeTypes(std::move(types));
  if (of_graph.norm.defined())
    relations.norm = relations.averages_types ? relation_norm(block, relations.types) : relation_norm(block);
  if (!of_graph.node_types.empty())
    for (const Index v : block.src_rows()) relations.node_types.push_back(of_graph.node_types[v]);
  return relations;
}

Relations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels) {
  const NoTape data_only;
  Relations relations;
  relations.norm = relation_norm(graph);

  Tensor steps;  // from the class of the source to that of the destination
  if (labels.defined()) steps = graph.apply_edges(fn::v_sub_u(labels, labels)).value();
  const Random draws({.seed = 0x72656c});
  Array<std::uint16_t> types;
  for (Index e = 0; e < graph.num_edges(); ++e) {
    const auto id = static_cast<std::uint64_t>(graph.edge_ids()[e]);
    const bool tells = steps.defined() && draws.uniform(id, 0) < 0.5;
    const Index step = tells ? static_cast<Index>(steps.row(e)[0])
                             : static_cast<Index>(draws.uniform(id, 1) * static_cast<double>(num_rels));
    types.push_back(static_cast<std::uint16_t>((step % num_rels + num_rels) % num_rels));
  }
  relations.types = EdgeTypes(std::move(types));
  return relations;
}

}  // namespace sar::tools
