/// Edge types for graphs that have none.
#pragma once

#include <sar/sar.hpp>

#include <algorithm>
#include <cstddef>

namespace sar::examples {

/// What a relational convolution wants to know of this worker's edges, in the graph's edge order.
struct Relations {
  Array<Index> types;  ///< [local edges]
  Tensor norm;         ///< [local edges, 1]: 1 / in-degree of the destination, so that messages are averaged
};

/// Types 0 .. num_rels - 1. Every other edge tells how far apart the classes of its ends lie, modulo
/// num_rels; the rest, and all edges when `labels` [local nodes, 1] is undefined, have drawn types. Functions
/// of labels and edge ids only, so that any number of workers gets the same. Collective.
inline Relations make_relations(const GraphShardManager& graph, Index num_rels, const Tensor& labels) {
  const NoTape data_only;
  Tensor inverse({graph.num_dst_nodes(), 1});
  for (Index v = 0; v < graph.num_dst_nodes(); ++v)
    inverse.row(v)[0] =
        real(1) / static_cast<real>(std::max<Index>(graph.in_degrees()[static_cast<std::size_t>(v)], 1));
  Relations relations;
  relations.norm =
      graph.apply_edges([&](const EdgeBatch& edges) { return edges.dst(Variable(inverse)); }).value();

  Tensor steps;  // from the class of the source to that of the destination
  if (labels.defined()) steps = graph.apply_edges(fn::v_sub_u(labels, labels)).value();
  const Random draws({.seed = 0x72656c});
  for (Index e = 0; e < graph.num_edges(); ++e) {
    const auto id = static_cast<std::uint64_t>(graph.edge_ids()[static_cast<std::size_t>(e)]);
    const bool tells = steps.defined() && draws.uniform(id, 0) < 0.5;
    const Index step = tells ? static_cast<Index>(steps.row(e)[0])
                             : static_cast<Index>(draws.uniform(id, 1) * static_cast<double>(num_rels));
    relations.types.push_back((step % num_rels + num_rels) % num_rels);
  }
  return relations;
}

}  // namespace sar::examples
