#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>
#include <sar/graph/build/layer_graph.hpp>
#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

/// The seeds as rows of this rank. Collective.
Array<Index> rows_of_seeds(const ShardedGraph& graph, std::span<const Index> seeds, int num_layers) {
  Array<Index> rows(seeds.begin(), seeds.end());
  graph.comm.agree([&] {  // before numbers of layers are compared
    require<InputError>(
        graph.is_homogeneous(),
        "message flow graphs are made from a graph of one kind of nodes, not from a bipartite "
        "graph or a block");
    require<InputError>(num_layers >= 1, "message flow graphs of ", num_layers,
                        " layers, expected at least 1");
    const int rank = graph.comm.rank();
    const Index first = graph.dst_book.begin(rank), last = graph.dst_book.end(rank);
    std::vector<bool> seen(last - first);
    for (Index& seed : rows) {
      require<InputError>(0 <= seed && seed < graph.dst_book.num_nodes(), "seed ", seed,
                          " is no node, expected ", index_range(graph.dst_book.num_nodes()));
      require<InputError>(first <= seed && seed < last, "seed ", seed, " of rank ", rank,
                          " is a node of rank ", graph.dst_book.owner(seed));
      require<InputError>(!seen[seed - first], "seed ", seed, " is given twice");
      seen[seed - first] = true;
      seed -= first;
    }
  });
  std::array<int, 2> layers{num_layers, -num_layers};
  graph.comm.all_reduce(std::span<int>(layers), ReduceOp::max);
  require<InputError>(layers[0] == -layers[1],
                      "message flow graphs of a different number of layers on different "
                      "ranks: ",
                      -layers[1], " to ", layers[0]);
  return rows;
}

}  // namespace

MessageFlowGraph::MessageFlowGraph(LayerGraph layer, Array<Index> dst_rows, const GraphOptions& options)
    : GraphShardManager(std::move(layer.graph), options),
      src_rows_(std::move(layer.src_rows)),
      dst_rows_(std::move(dst_rows)),
      edge_rows_(std::move(layer.edge_rows)) {}

std::vector<MessageFlowGraph> construct_mfgs(const GraphShardManager& graph, std::span<const Index> seeds,
                                             int num_layers) {
  const TraceScope scope("construct_mfgs", TraceKind::compute);
  return graph.comm().agree([&] {
    const ShardedGraph& whole = *graph.shards();
    Array<Index> dst_rows = rows_of_seeds(whole, seeds, num_layers);
    std::vector<MessageFlowGraph> mfgs;
    for (int l = 0; l < num_layers; ++l) {  // the last layer first
      LayerGraph layer = make_layer(whole, dst_rows, all_in_edges(whole, dst_rows));
      Array<Index> next = layer.src_rows;
      mfgs.emplace_back(std::move(layer), std::move(dst_rows), graph.options());
      dst_rows = std::move(next);
    }
    std::reverse(mfgs.begin(), mfgs.end());
    return mfgs;
  });
}

}  // namespace sar
