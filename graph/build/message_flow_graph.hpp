/// Message flow graphs: for each layer of a network, the part of a graph that the wanted nodes depend on.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace sar {

/// A graph from the nodes that a layer reads to those it computes: destinations are the first of each rank's
/// sources. Used like any graph; options are those of the graph it was made from. Degrees are those in the
/// whole graph, so that a layer computes the same for a node as it does there.
class MessageFlowGraph : public GraphShardManager {
 public:
  // Rows of this rank in the graph that it was made from.
  [[nodiscard]] const Array<Index>& src_rows() const noexcept { return src_rows_; }
  [[nodiscard]] const Array<Index>& dst_rows() const noexcept { return dst_rows_; }
  [[nodiscard]] const Array<Index>& edge_rows() const noexcept { return edge_rows_; }

 private:
  friend std::vector<MessageFlowGraph> construct_mfgs(const GraphShardManager& graph,
                                                      std::span<const Index> seeds, int num_layers);
  MessageFlowGraph(GraphShardManager graph, Array<Index> src_rows, Array<Index> dst_rows,
                   Array<Index> edge_rows)
      : GraphShardManager(std::move(graph)),
        src_rows_(std::move(src_rows)),
        dst_rows_(std::move(dst_rows)),
        edge_rows_(std::move(edge_rows)) {}

  Array<Index> src_rows_, dst_rows_, edge_rows_;
};

/// What a network runs on: one graph for all of its layers, or a message flow graph for each. Refers to the
/// graphs: an argument of the network's call operator, and nothing to keep.
class LayerGraphs {
 public:
  LayerGraphs(const GraphShardManager& graph) : graph_(&graph) {}          // NOLINT: converts
  LayerGraphs(const std::vector<MessageFlowGraph>& mfgs) : mfgs_(mfgs) {}  // NOLINT: by design

  /// The graph of the layer that is applied as number `layer`. Throws InputError when there is none.
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

/// The graphs of `num_layers` layers, in the order in which they are applied: the sources of the first are
/// all nodes that the seeds depend on, the destinations of the last are the seeds, in the order given.
/// `seeds`: partitioned ids of nodes of this rank, each once; ranks may give none. One kind of nodes.
/// Features of the first layer's sources are gather_rows(x, mfgs.front().src_rows()). Collective. Throws, the
/// same on every rank, InputError naming a seed that is out of range, owned by another rank, or given twice,
/// and when num_layers < 1 or not the same on all ranks, or the graph has two kinds of nodes (message flow
/// graphs among them). Time and memory: linear in this rank's nodes, its halo, and the edges kept.
[[nodiscard]] std::vector<MessageFlowGraph> construct_mfgs(const GraphShardManager& graph,
                                                           std::span<const Index> seeds, int num_layers);

}  // namespace sar
