#include "generated_relations.hpp"

#include <sar/models.hpp>

#include <cstdint>
#include <utility>

namespace sar::tools {

GraphRelations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels) {
  const NoTape data_only;
  GraphRelations relations;
  relations.norm = weighted_norm(relation_norm(graph), graph);

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
