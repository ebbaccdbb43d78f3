#include <sar/nn/conv/relation_norm.hpp>
#include <sar/nn/models/relations.hpp>

#include <cstdint>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

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
    relations.norm = relations.averages_types ? relation_norm(block, relations.types) : relation_norm(block);
  if (!of_graph.node_types.empty())
    for (const Index v : block.src_rows()) relations.node_types.push_back(of_graph.node_types[v]);
  return relations;
}

}}  // namespace sar
