// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/node_data.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

NodeData without_columns(GraphData& graph) {
  NodeTypeData& nodes = graph.node_types[0];
  NodeData data;
  data.name = graph.name;
  data.book = nodes.book;
  data.original_ids = std::move(nodes.original_ids);
  data.ids_are_original = nodes.ids_are_original;
  data.edges = std::move(graph.edge_types[0].edges);
  data.num_edges = graph.edge_types[0].num_edges;
  return data;
}

Graph construct_full_graph(const Communicator& comm, NodeData& data, const GraphOptions& options) {
  return comm.agree([&] {
    Graph graph(comm, data.book, data.book, std::exchange(data.edges, {}), true, options, data.original_ids,
                data.original_ids);
    release_cached_memory();
    return graph;
  });
}
}}  // namespace sar
