/// Message flow graphs: for each layer of a network, the part of a graph on which the seeds depend.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct KeptEdges;
struct LayerGraph;

/// A block: a graph from the nodes that a layer reads to those it computes. The destinations of each rank are
/// the first of its sources. It is used like any graph and has the options of the graph it was made from.
/// In-degrees are those in the block, out-degrees those in the whole graph. So a layer computes for a node
/// what it computes there, where the block has all of the node's in-edges.
class MessageFlowGraph : public GraphShardManager {
 public:
  // Local rows in the graph that it was made from.
  [[nodiscard]] const Array<Index>& src_rows() const noexcept { return src_rows_; }
  [[nodiscard]] const Array<Index>& dst_rows() const noexcept { return dst_rows_; }
  [[nodiscard]] const Array<Index>& edge_rows() const noexcept { return edge_rows_; }

  /// For makers of layers.
  MessageFlowGraph(LayerGraph layer, Array<Index> dst_rows, const GraphOptions& options);

 private:
  Array<Index> src_rows_, dst_rows_, edge_rows_;
};

/// What a network runs on: one graph for all of its layers, or a message flow graph for each. It refers to
/// the graphs: pass it to the network's call operator, do not keep it.
class LayerGraphs {
 public:
  LayerGraphs(const GraphShardManager& graph) : graph_(&graph) {}          // NOLINT: converts
  LayerGraphs(const std::vector<MessageFlowGraph>& mfgs) : mfgs_(mfgs) {}  // NOLINT: by design

  /// The graph of layer number `layer`. Throws InputError when there is none.
  [[nodiscard]] const GraphShardManager& operator[](std::size_t layer) const {
    if (graph_ != nullptr) return *graph_;
    require<InputError>(layer < mfgs_.size(), "a network with a layer ", layer, " on ", mfgs_.size(),
                        " message flow graphs");
    return mfgs_[layer];
  }

 private:
  const GraphShardManager* graph_ = nullptr;
  std::span<const MessageFlowGraph> mfgs_;
};

/// The graphs of `num_layers` layers, the first layer first. The sources of the first are all nodes on which
/// the seeds depend; the destinations of the last are the seeds, in the order given. `seeds` are global ids
/// of nodes of this rank, each once; a rank may give none. The graph is homogeneous. The features of the
/// first layer's sources are
///     gather_rows(x, mfgs.front().src_rows()),
/// or deferred_gather_rows of it, which copies none of them.
/// Collective. Throws InputError, the same on every rank, naming a seed that is no node, a node of another
/// rank or given twice, for num_layers < 1 or different on some ranks, and for a bipartite graph or a block.
/// Time and memory are linear in this rank's nodes, its halo, and the edges kept.
[[nodiscard]] std::vector<MessageFlowGraph> construct_mfgs(const GraphShardManager& graph,
                                                           std::span<const Index> seeds, int num_layers);

/// The graphs of `num_layers` layers, the first layer first: the last one computes the seeds, and each other
/// one the sources of the next. keep(layer, rows) gives the in-edges that a layer uses; layers count from 0.
/// For makers of layers. Collective. Throws as construct_mfgs.
std::vector<MessageFlowGraph> make_layers(const GraphShardManager& graph, std::span<const Index> seeds,
                                          Index num_layers,
                                          const std::function<KeptEdges(Index, const Array<Index>&)>& keep);

}  // namespace sar
