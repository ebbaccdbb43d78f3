// SPDX-License-Identifier: MIT

// The layers are made from the last to the first: the sources of a layer are the destinations of the layer
// before it. Each layer costs its in-edges and the exchanges of layer_graph.cpp.
#include <sar/core/trace/trace.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

MessageFlowGraph::MessageFlowGraph(LayerGraph layer, Array<Index> dst_rows, const GraphOptions& options)
    : Graph(std::move(layer.graph), options),
      rows_(std::make_shared<const LayerRows>(
          LayerRows{std::move(layer.src_rows), std::move(dst_rows), std::move(layer.edge_rows)})),
      num_halo_rows_(topology().remote.num_src_rows) {}

std::vector<MessageFlowGraph> construct_mfgs(const Graph& graph, std::span<const Index> seeds,
                                             int num_layers) {
  const TraceScope scope("construct_mfgs", TraceKind::compute);
  return graph.comm().agree([&] {
    require<InputError>(num_layers >= 1, "message flow graphs of ", num_layers,
                        " layers, expected at least 1");
    graph.comm().require_equal(CollectiveCall("construct_mfgs").equal("number of layers", num_layers));
    return make_layers(graph, seeds, num_layers, [&](Index, const Array<Index>& dst_rows) {
      return all_in_edges(*graph.shards(), dst_rows);
    });
  });
}

std::vector<MessageFlowGraph> construct_mfgs(const Graph& graph, const NodesByType& seeds, int num_layers) {
  const HomogeneousForm& form = graph.to_homogeneous();
  const auto nodes = graph.comm().agree([&] { return form.nodes_of(seeds); });
  return with_types(graph, construct_mfgs(form.graph, nodes, num_layers));
}

std::vector<MessageFlowGraph> with_types(const Graph& graph, const std::vector<MessageFlowGraph>& blocks) {
  return graph.comm().agree([&] {
    std::vector<MessageFlowGraph> typed;
    for (const MessageFlowGraph& block : blocks) typed.emplace_back(graph, block);
    return typed;
  });
}

std::vector<MessageFlowGraph> make_layers(const Graph& graph, std::span<const Index> seeds, Index num_layers,
                                          const std::function<KeptEdges(Index, const Array<Index>&)>& keep) {
  const ShardedGraph& whole = *graph.shards();
  Array<Index> dst_rows = rows_of_seeds(*whole.topology, seeds);
  std::vector<MessageFlowGraph> layers;
  for (Index l = num_layers - 1; l >= 0; --l) {
    LayerGraph layer = make_layer(whole, dst_rows, keep(l, dst_rows));
    Array<Index> next = layer.src_rows;
    layers.emplace_back(std::move(layer), std::move(dst_rows), graph.options());
    dst_rows = std::move(next);
  }
  std::reverse(layers.begin(), layers.end());
  return layers;
}
}}  // namespace sar
