// SPDX-License-Identifier: MIT

/// Message flow graphs: for each layer of a network, the part of a graph that the seeds depend on.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct KeptEdges;
struct LayerGraph;

/// A block: a graph from the nodes that a layer reads to the nodes that it computes. The destinations of each
/// rank are the first of its sources. It is used like any graph and has the options of its original graph.
/// In-degrees are those in the block, out-degrees those in the whole graph. A layer therefore computes the
/// same result for a node as on the whole graph, if the block has all in-edges of the node.
///
/// @code
/// const std::vector<Index> seeds{data.book.begin(comm.rank())};  // global ids of nodes of this rank
/// const std::vector<MessageFlowGraph> blocks = construct_mfgs(graph, seeds, /*num_layers=*/2);
/// Variable h = gather_rows(features, blocks.front().src_rows());
/// for (const MessageFlowGraph& block : blocks) h = block.update_all(fn::copy_u(h), fn::mean);
/// @endcode
class MessageFlowGraph : public Graph {
 public:
  // Local rows in the original graph.
  [[nodiscard]] const Array<Index>& src_rows() const noexcept { return src_rows_; }
  [[nodiscard]] const Array<Index>& dst_rows() const noexcept { return dst_rows_; }
  [[nodiscard]] const Array<Index>& edge_rows() const noexcept { return edge_rows_; }

  /// Rows of other ranks that a layer on this graph reads.
  [[nodiscard]] Index num_halo_rows() const noexcept;

  /// For functions that create layers.
  MessageFlowGraph(LayerGraph layer, Array<Index> dst_rows, const GraphOptions& options);

 private:
  Array<Index> src_rows_, dst_rows_, edge_rows_;
};

/// The graph argument of a network: one graph for all layers, or one message flow graph per layer. It only
/// refers to the graphs: pass it to the network's call operator and do not store it.
///
/// @code
/// SAGEConv first(64, 16, gen), second(16, 4, gen);
/// const auto network = [&](const LayerGraphs& graphs, const Variable& x) {
///   return second(graphs[1], relu(first(graphs[0], x)));
/// };
/// const Variable y = network(graph, features);  // or network(blocks, rows of the sources of blocks.front())
/// @endcode
class LayerGraphs {
 public:
  LayerGraphs(const Graph& graph) : graph_(&graph) {}                      // NOLINT: converts
  LayerGraphs(const std::vector<MessageFlowGraph>& mfgs) : mfgs_(mfgs) {}  // NOLINT: by design

  /// Returns the graph of layer number `layer`. Throws InputError if it does not exist.
  [[nodiscard]] const Graph& operator[](std::size_t layer) const {
    if (graph_ != nullptr) return *graph_;
    require<InputError>(layer < mfgs_.size(), "a network with a layer ", layer, " on ", mfgs_.size(),
                        " message flow graphs");
    return mfgs_[layer];
  }

 private:
  const Graph* graph_ = nullptr;
  std::span<const MessageFlowGraph> mfgs_;
};

/// Returns the message flow graphs of `num_layers` layers, the first layer first. The sources of the first
/// one are all nodes that the seeds depend on; the destinations of the last one are the seeds, in the given
/// order. `seeds` are distinct global ids of nodes of this rank; a rank may give none. The graph must be
/// homogeneous. The features of the first layer's sources are
///
///     gather_rows(x, mfgs.front().src_rows())
/// or deferred_gather_rows of the same, which does not copy them. Throws InputError on every rank for a seed
/// that is not a node, belongs to another rank or is given twice, for num_layers < 1 or different on some
/// ranks, and for a bipartite graph or a block. Time and memory are linear in this rank's nodes, its halo and
/// the kept edges. Collective.
[[nodiscard]] std::vector<MessageFlowGraph> construct_mfgs(const Graph& graph, std::span<const Index> seeds,
                                                           int num_layers);

/// Collective. Returns the message flow graphs of `num_layers` layers, the first layer first: the last one
/// computes the seeds, and each other one the sources of the next. keep(layer, rows) returns the in-edges
/// that a layer uses; layers count from 0. For samplers. Throws as construct_mfgs.
std::vector<MessageFlowGraph> make_layers(const Graph& graph, std::span<const Index> seeds, Index num_layers,
                                          const std::function<KeptEdges(Index, const Array<Index>&)>& keep);
}}  // namespace sar
