// SPDX-License-Identifier: MIT

/// SaintLoader and its options: mini-batches of GraphSAINT, subgraphs of drawn nodes with coefficients that
/// make their sums unbiased, as dgl.dataloading.SAINTSampler and PyG's GraphSAINTSampler.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

// Options of a SaintLoader.

/// How the nodes of a subgraph are drawn.
enum class SaintMethod {
  node,  ///< each node by itself, in proportion to its out-degree
  edge,  ///< the ends of edges u -> v, in proportion to 1 / out-degree of u + 1 / in-degree of v
  walk   ///< random walks over in-edges, from roots that are equally likely
};

/// Options of a SaintLoader; the same on every rank.
struct SaintOptions {
  SaintMethod method = SaintMethod::node;
  /// Draws of a batch, of all ranks together: nodes, edges or roots, with replacement. A batch has fewer
  /// nodes where draws meet.
  Index draws = 1000;
  Index walk_length = 2;  ///< walk: steps of each walk
  /// Batches of an epoch. 0: as many as draw about as many nodes as the graph has.
  Index batches = 0;
  /// edge, walk: coefficients are counted in subgraphs drawn beforehand, which have so many nodes for each
  /// node of the graph. Those of the method node are known without counting.
  Index coverage = 50;
  /// Divides messages by the probability of their edges, and keeps the degrees of the whole graph: for layers
  /// that add weighted messages. Otherwise messages and degrees are those of the subgraph: for attention,
  /// maxima and layers that ignore edge weights.
  bool scale_messages = true;
  std::uint64_t seed = 0;
};

class SaintDraws;

/// The input of a training step.
struct SaintBatch {
  Index number = 0;  ///< index in its epoch, from 0
  /// The drawn nodes with all edges between them; the same graph for all layers. Node i of this rank is row
  /// graph.dst_rows()[i] of the whole graph.
  MessageFlowGraph graph;
  Tensor loss_weights;  ///< [nodes of this rank]: 1 / p_v
};

/// Iterates over random subgraphs (Zeng, Zhou, Srivastava, Kannan, Prasanna, "GraphSAINT: Graph Sampling
/// Based Inductive Learning Method", ICLR 2020). A batch has the drawn nodes and all edges between them. With
/// the probabilities p_v that node v is in a batch, and p_uv that edge u -> v is,
///
///     edge weight    w_uv p_v / p_uv    the mean over the batches with v of sum_u w_uv p_v / p_uv x_u is that
///                                       of the whole graph, since degrees are those of the whole graph
///     loss weight    1 / p_v            the mean over the batches of sum_v L_v / p_v is the sum over all nodes
///
/// (the paper's aggregator and loss normalization, 1 / alpha_uv and |V| / lambda_v). w_uv is the weight of
/// the edge in the whole graph, or 1. So a layer that adds messages times graph.edge_weight() computes what
/// it computes on the whole graph, in the mean. For the method node, nodes are drawn independently, so that
/// p_uv = p_u p_v is known. For the others, p_v = C_v / N and p_uv = C_uv / N are counted in N subgraphs that
/// are drawn beforehand, as the paper does; they are the batches 0 to N - 1 of epoch 0. A node or edge that
/// was not counted has C = 1. The method edge never draws nodes without edges.
///
/// Whether a node is drawn is a function of (seed, epoch, batch, original ids), so batches are the same for
/// every number of ranks. Each rank computes its own nodes of the batch; some ranks may have none.
///
/// @code
/// SaintLoader loader(graph, {.method = SaintMethod::walk, .draws = 20, .walk_length = 3, .seed = 1});
/// loader.start_epoch(1);
/// while (const auto batch = loader.next()) {
///   const Variable x = gather_rows(features, batch->graph.dst_rows());
///   const Variable h = batch->graph.update_all(fn::u_mul_e(x, batch->graph.edge_weight()), fn::mean);
/// }
/// @endcode
class SaintLoader {
 public:
  /// Collective. Throws the same exception on every rank: InputError for fewer than one draw or step of a
  /// walk, a negative number of batches, a coverage below 1, options that differ between ranks, and a graph
  /// that is not homogeneous or whose edge ids were dropped. Memory: for node 8 bytes per node and halo row;
  /// otherwise 4 bytes per node, 8 per in-edge, and for edge 8 per node and halo row.
  explicit SaintLoader(const Graph& graph, const SaintOptions& options = {});

  [[nodiscard]] Index num_batches() const noexcept { return num_batches_; }  ///< per epoch
  /// Subgraphs drawn beforehand; 0 for the method node.
  [[nodiscard]] Index num_counted() const noexcept { return num_counted_; }
  /// Returns p_v of a row of this rank, and p_uv / p_v of an edge row.
  [[nodiscard]] double node_probability(Index row) const;
  [[nodiscard]] double edge_probability(Index edge) const;

  /// Starts an epoch at the batch `first_batch`. Throws InputError if that batch does not exist.
  void start_epoch(std::uint64_t epoch, Index first_batch = 0);
  /// Collective. Returns the next batch, or nothing after the last one. Throws InputError on every rank if
  /// epochs or batches of the ranks differ.
  [[nodiscard]] std::optional<SaintBatch> next();

 private:
  struct Nodes;
  [[nodiscard]] Nodes draw(std::uint64_t epoch, Index batch) const;
  void count();

  Graph graph_;
  SaintOptions options_;
  std::shared_ptr<const SaintDraws> draws_;
  Index num_batches_ = 0, num_counted_ = 0;
  Array<std::int32_t> node_counts_, edge_counts_;  // C_v of the rows, C_uv of the edge rows
  Recoverable<std::uint64_t> epoch_{0};
  Recoverable<Index> number_{0};
};
}}  // namespace sar
