// SPDX-License-Identifier: MIT

/// The graph of one layer of a network: some nodes of a whole graph, some of their in-edges, and the sources
/// of these edges. For implementation files.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// In-edges of rows 0, 1, ..., as edge rows of the whole graph. Row i has the edges edge[begin[i]] ...
/// edge[begin[i + 1] - 1], in any order. Edges may repeat.
struct KeptEdges {
  Array<Index> begin{0};
  Array<local_index> edge;

  /// Removes the edges for which keep(edge) is false.
  template <class Keep>
  void keep_if(const Keep& keep) {
    Index count = 0;
    for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
      const Index first = std::exchange(begin[i], count);
      for (Index k = first; k < begin[i + 1]; ++k)
        if (keep(edge[k])) edge[count++] = edge[k];
    }
    begin.back() = count;
    edge.resize(static_cast<std::size_t>(count));
  }
};

struct LayerGraph {
  std::shared_ptr<const ShardedGraph> graph;
  Array<Index> src_rows;   ///< sources of the layer as rows of the whole graph; the destinations come first
  Array<Index> edge_rows;  ///< edges of the layer as edge rows of the whole graph
};

/// Collective. Seeds, which are global ids, as rows of this rank. Throws InputError, the same on every
/// rank, naming a seed that is no node, a node of another rank or given twice, and unless the graph is
/// homogeneous.
Array<Index> rows_of_seeds(const GraphTopology& graph, std::span<const Index> seeds);

/// Returns the layer that computes the distinct rows `dst_rows` of the whole graph from the edges in `kept`.
/// In-degrees are those in the layer, out-degrees those in the whole graph. Collective: one request to each
/// owner of sources.
LayerGraph make_layer(const ShardedGraph& whole, const Array<Index>& dst_rows, const KeptEdges& kept);

/// Returns the graph of the distinct rows `rows` of the whole graph with the edges in `kept`, whose sources
/// are among the rows of all ranks. It is a graph of one node type like the whole one, with its own degrees.
/// Collective: two requests to each owner of sources.
LayerGraph make_subgraph(const ShardedGraph& whole, const Array<Index>& rows, const KeptEdges& kept);

/// The same with the degrees of the whole graph, and with factor(edge row of the whole graph) times the
/// edge's weight, or times 1; normalized weights that the whole graph keeps are also multiplied. Collective:
/// one request to each owner of sources.
LayerGraph make_subgraph(const ShardedGraph& whole, const Array<Index>& rows, const KeptEdges& kept,
                         FunctionRef<double(Index)> factor);

/// Returns all in-edges of the rows.
KeptEdges all_in_edges(const ShardedGraph& whole, const Array<Index>& dst_rows);

}}  // namespace sar
