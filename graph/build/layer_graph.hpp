/// The graph of one layer of a network: some nodes of a whole graph, some of their in-edges, and the nodes
/// that these come from. For implementation files.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <memory>
#include <span>

namespace sar::inline SAR_PRECISION {

/// In-edges of rows 0, 1, ... as edge rows of the whole graph: those of row i are
/// edge[begin[i]] ... edge[begin[i + 1] - 1], in any order. An edge may come several times.
struct KeptEdges {
  Array<Index> begin{0};
  Array<local_index> edge;
};

struct LayerGraph {
  std::shared_ptr<ShardedGraph> graph;
  Array<Index> src_rows;   ///< sources of the layer as rows of the whole graph, the destinations first
  Array<Index> edge_rows;  ///< edges of the layer as edge rows of the whole graph
};

/// Seeds, which are global ids, as rows of this rank. Collective. Throws InputError, the same on every rank,
/// naming a seed that is no node, a node of another rank or given twice, and unless the graph is homogeneous.
Array<Index> rows_of_seeds(const ShardedGraph& graph, std::span<const Index> seeds);

/// The layer that computes the rows `dst_rows` of the whole graph, each once, from the edges that are kept of
/// them. In-degrees are those in the layer, out-degrees those in the whole graph. One request to each owner
/// of sources. Collective.
LayerGraph make_layer(const ShardedGraph& whole, const Array<Index>& dst_rows, const KeptEdges& kept);

/// All in-edges of the rows.
KeptEdges all_in_edges(const ShardedGraph& whole, const Array<Index>& dst_rows);

}  // namespace sar
