// SPDX-License-Identifier: MIT

/// Message flow graphs: for each layer of a network, the part of a graph that the seeds depend on.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct KeptEdges;
struct LayerGraph;

/// Global ids of nodes of this rank within their types, keyed by node type.
using NodesByType = std::map<std::string, std::vector<Index>>;

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
///
/// Of a graph with several types there are two kinds. A block with types has, for each node type, the nodes
/// that the layer reads, the first of them those that it computes, and for each edge type its edges, as DGL's
/// blocks of heterographs. HeteroGraphConv and multi_update_all take rows of its sources and return rows of
/// its destinations. Seeds with types give such blocks:
///
/// @code
/// const NodesByType first{{"fluid", {hetero.book("fluid").begin(comm.rank())}}};
/// Graph::Rows rows;
/// const std::vector<MessageFlowGraph> typed = construct_mfgs(hetero, first, /*num_layers=*/1);
/// for (const std::string& type : hetero.node_types()) {
///   const Variable of_type(Tensor::full({hetero.num_nodes(type), 4}, 1));
///   rows[type] = gather_rows(of_type, typed.front().src_rows(type));
/// }
/// @endcode
///
/// A block of the homogeneous form is one without types, for RelGraphConv and HGTConv. In both, node and edge
/// ids are the original ones, so that random draws, for example of dropout, are those on the whole graph.
class MessageFlowGraph : public Graph {
 public:
  /// Collective. `block`, of graph.to_homogeneous().graph, with the types of `graph`. Types of which it has
  /// nothing are empty. An all-to-all exchange of the types of halo rows, and one of a number per rank for
  /// each node type. Throws InputError on every rank if `graph` is a block itself, or if the block has rows
  /// or edges that the graph does not have.
  MessageFlowGraph(const Graph& graph, const MessageFlowGraph& block);

  // Local rows in the original graph. With types, in its homogeneous form.
  [[nodiscard]] const Array<Index>& src_rows() const noexcept { return rows_->src; }
  [[nodiscard]] const Array<Index>& dst_rows() const noexcept { return rows_->dst; }
  [[nodiscard]] const Array<Index>& edge_rows() const noexcept { return rows_->edge; }

  /// Rows of other ranks that a layer on this graph reads.
  [[nodiscard]] Index num_halo_rows() const noexcept { return num_halo_rows_; }

  // By type. All are local and throw InputError for an unknown type.
  /// Local rows of a type in the original graph, of the nodes that the layer reads.
  [[nodiscard]] const Array<Index>& src_rows(const std::string& type) const;
  /// The same of those that it computes. In the last block, they are in the order of the seeds.
  [[nodiscard]] std::span<const Index> dst_rows(const std::string& type) const;
  /// For each edge of a relation of the block, in its edge order, its row in the edge order of the relation
  /// in the whole graph: gather_rows(data, block.edge_rows(type)) are the rows of its edges. Keeps 8 bytes
  /// for each edge of the relation, for all blocks of the graph. Throws InputError if edge ids were dropped.
  [[nodiscard]] Array<Index> edge_rows(const EdgeType& type) const;
  [[nodiscard]] Array<Index> edge_rows(const std::string& type) const;
  /// Returns the rows of each type from rows that belong to src_rows(). Copies. Differentiable. Throws
  /// ShapeError if the number of rows does not match.
  [[nodiscard]] Rows split(const Variable& sources) const;
  /// Returns the rows that belong to dst_rows() from rows of each type, all of equal width. A missing type
  /// counts as zeros. Copies. Differentiable. Throws InputError if there are no rows at all, ShapeError if
  /// numbers of rows do not match.
  [[nodiscard]] Variable join(const Rows& destinations) const;

  /// For functions that create layers.
  MessageFlowGraph(LayerGraph layer, Array<Index> dst_rows, const GraphOptions& options);

 private:
  struct LayerRows {
    Array<Index> src, dst, edge;
  };
  struct Places;
  struct Made;
  MessageFlowGraph(const MessageFlowGraph& block, Made made);
  static Made make(const Graph& graph, const MessageFlowGraph& block);

  std::shared_ptr<const LayerRows> rows_;
  Index num_halo_rows_;
  std::shared_ptr<const Places> places_;  // null without types
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
/// Collective. The same of a graph with types: blocks with types. Throws as above, and InputError for an
/// unknown type.
[[nodiscard]] std::vector<MessageFlowGraph> construct_mfgs(const Graph& graph, const NodesByType& seeds,
                                                           int num_layers);
/// Collective. Blocks of the homogeneous form of a graph, with its types.
[[nodiscard]] std::vector<MessageFlowGraph> with_types(const Graph& graph,
                                                       const std::vector<MessageFlowGraph>& blocks);

/// Collective. Returns the message flow graphs of `num_layers` layers, the first layer first: the last one
/// computes the seeds, and each other one the sources of the next. keep(layer, rows) returns the in-edges
/// that a layer uses; layers count from 0. For samplers. Throws as construct_mfgs.
std::vector<MessageFlowGraph> make_layers(const Graph& graph, std::span<const Index> seeds, Index num_layers,
                                          const std::function<KeptEdges(Index, const Array<Index>&)>& keep);
}}  // namespace sar
