/// Predictors: a score for a pair of nodes from the representations of its two ends, as dgl.nn.EdgePredictor
/// and the predictors of DGL's guide to link prediction.
///
/// Each takes the rows of both ends, pair by pair: those of a mini-batch (gather_rows), or of pairs of any
/// nodes of all ranks (NodePairs). Or it takes a graph, and scores all of its edges: [local edges, ...] in
/// the graph's edge order; no row of an end is then stored for an edge. On rows a predictor is local. On a
/// graph it makes one apply_edges, and throws ShapeError, the same on every rank, when representations do not
/// fit.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/init.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/module.hpp>
#include <sar/nn/node_features.hpp>

namespace sar::inline SAR_PRECISION {

///     s_uv = h_u . h_v
///
/// No parameters. Collective on a graph.
class DotPredictor : public Module {
 public:
  DotPredictor() = default;
  /// h_src [n, D] and h_dst [n, D] -> [n, 1]. Throws ShapeError when shapes differ.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst) const;
  /// h [local nodes, D], or a pair for both ends -> [local edges, 1].
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& h) const;
};

struct MLPPredictorOptions {
  Index hidden = 0;  ///< width of the hidden layer; 0: that of the representations
  Index out = 1;     ///< numbers for a pair: 1 for a score, more for classes of edges
};

///     s_uv = W_2 relu(W_1 [h_u, h_v] + b_1) + b_2
///
/// Parameters, with the names of DGL's example: W1.weight [hidden, 2 D], W1.bias, W2.weight [out, hidden],
/// W2.bias, which start as those of Linear. The halves of W_1 are applied to the two ends apart; on a graph
/// once for each node instead of once for each edge. Collective on a graph.
class MLPPredictor : public Module {
 public:
  /// Throws InputError unless widths are positive.
  MLPPredictor(Index feats, Generator& gen, const MLPPredictorOptions& options = {});

  /// h_src [n, D] and h_dst [n, D] -> [n, out]. Throws ShapeError for other shapes.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst) const;
  /// h [local nodes, D], or a pair for both ends -> [local edges, out].
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& h) const;

 private:
  /// The halves of W_1 on rows of one end each.
  [[nodiscard]] Variable hidden_of_src(const Variable& h) const;
  [[nodiscard]] Variable hidden_of_dst(const Variable& h) const;

  Index feats_;
  Linear w1_, w2_;
};

/// Yang et al., arXiv 1412.6575, for edges of several types:
///
///     s_uv = sum_j h_uj w_rj h_vj
///
/// with a vector w_r for each relation r. Parameter: w_relation [relations, D], Xavier-uniform with
/// ReLU's gain at the start. Collective on a graph.
class DistMultPredictor : public Module {
 public:
  /// Throws InputError unless both are positive.
  DistMultPredictor(Index num_rels, Index feats, Generator& gen);

  /// h_src [n, D] and h_dst [n, D], and the relation of each pair -> [n, 1]. Throws ShapeError for other
  /// shapes, InputError for a relation that there is not.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst, RowIds rels) const;
  /// h [local nodes, D], or a pair for both ends, and the relation of each local edge -> [local edges, 1].
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& h, RowIds rels) const;

 private:
  void require_relations(Index pairs, const RowIds& rels) const;

  Variable w_relation_;
};

}  // namespace sar
