#include "relations.hpp"

#include <sar/sar.hpp>

#include <algorithm>
#include <cstdint>

namespace sar::tools {

Tensor averaging_norm(const GraphShardManager& graph) {
  const NoTape data_only;
  Tensor inverse({graph.num_dst_nodes(), 1});
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    inverse.row(v)[0] = real(1) / static_cast<real>(std::max<Index>(graph.in_degrees()[v], 1));
  return graph.apply_edges([&](const EdgeBatch& edges) { return edges.dst(Variable(inverse)); }).value();
}

Relations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels) {
  const NoTape data_only;
  Relations relations;
  relations.norm = averaging_norm(graph);

  Tensor steps;  // from the class of the source to that of the destination
  if (labels.defined()) steps = graph.apply_edges(fn::v_sub_u(labels, labels)).value();
  const Random draws({.seed = 0x72656c});
  for (Index e = 0; e < graph.num_edges(); ++e) {
    const auto id = static_cast<std::uint64_t>(graph.edge_ids()[e]);
    const bool tells = steps.defined() && draws.uniform(id, 0) < 0.5;
    const Index step = tells ? static_cast<Index>(steps.row(e)[0])
                             : static_cast<Index>(draws.uniform(id, 1) * static_cast<double>(num_rels));
    relations.types.push_back((step % num_rels + num_rels) % num_rels);
  }
  return relations;
}

}  // namespace sar::tools
