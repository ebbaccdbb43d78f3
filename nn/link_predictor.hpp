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
#include <sar/nn/row_distance.hpp>

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

/// An end of an edge.
enum class EdgeEnd { source, destination };

/// A score for an edge of type r, as in knowledge graphs. A node and a relation make a query, which is
/// compared with the rows of the nodes at the other end:
///
///     s_uvr = compare(query(h_u, r), h_v) = compare(query'(h_v, r), h_u)
///
/// where compare is a dot product, or gamma minus a distance. So all nodes can be ranked as the other end of
/// an edge (filtered_ranking.hpp). Collective on a graph.
class RelationPredictor : public Module {
 public:
  /// h_src [n, D] and h_dst [n, D], and the relation of each pair -> [n, 1]. Throws ShapeError for other
  /// shapes, InputError for a relation that there is not.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst, RowIds rels) const;
  /// h [local nodes, D], or a pair for both ends, and the relation of each local edge -> [local edges, 1].
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& h, RowIds rels) const;

  /// Queries for the end `wanted` from the rows h [n, D] of the other ends -> [n, D]. Throws as above. Local.
  [[nodiscard]] Variable query(EdgeEnd wanted, const Variable& h, RowIds rels) const;
  /// How they are compared with rows of nodes.
  [[nodiscard]] RowComparison comparison() const noexcept { return comparison_; }
  /// D.
  [[nodiscard]] Index width() const noexcept { return width_; }
  [[nodiscard]] Index num_rels() const noexcept { return num_rels_; }

 protected:
  /// The query for destinations, or for sources, from rows of nodes and of relations. A function without
  /// state: records of operations on a graph hold it, and may outlive the predictor.
  using Query = Variable (*)(EdgeEnd wanted, const Variable& h, const Variable& w);
  RelationPredictor(const char* name, Index num_rels, Index width, Query query, RowComparison comparison,
                    real gamma = 0);

 private:
  /// [relations, D]: what a query gets the rows of.
  [[nodiscard]] virtual Variable relations() const = 0;
  void require_relations(Index pairs, const RowIds& rels) const;
  const char* name_;
  Index num_rels_, width_;
  Query query_;
  RowComparison comparison_;
  real gamma_;
};

/// Yang et al., arXiv 1412.6575:
///
///     s_uvr = sum_j h_uj w_rj h_vj
///
/// with a vector w_r for each relation r. Parameter: w_relation [relations, D], Xavier-uniform with
/// ReLU's gain at the start.
class DistMultPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive.
  DistMultPredictor(Index num_rels, Index feats, Generator& gen);

 private:
  [[nodiscard]] Variable relations() const override { return w_relation_; }

  Variable w_relation_;
};

/// Trouillon et al., arXiv 1606.06357, with complex rows of D / 2 numbers, real parts before imaginary ones:
///
///     s_uvr = Re(sum_j h_uj w_rj conj(h_vj))
///
/// Parameter: w_relation [relations, D], Xavier-uniform with ReLU's gain at the start.
class ComplExPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive and `feats` is even.
  ComplExPredictor(Index num_rels, Index feats, Generator& gen);

 private:
  [[nodiscard]] Variable relations() const override { return w_relation_; }

  Variable w_relation_;
};

struct TransEOptions {
  real gamma = 12;  ///< the score of an edge whose ends match
  int norm = 1;     ///< 1 or 2
};

/// Bordes et al. 2013, as DGL-KE's TransE_l1 and TransE_l2:
///
///     s_uvr = gamma - |h_u + w_r - h_v|    the sum of absolute values (norm 1), or the length (norm 2)
///
/// Rows are taken as they are, not scaled to length 1. Where a difference is 0, so is its slope. Parameter:
/// w_relation [relations, D], uniform in [-e, e) at the start, e = (gamma + 2) / D.
class TransEPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive, and for another norm than 1 or 2.
  TransEPredictor(Index num_rels, Index feats, Generator& gen, const TransEOptions& options = {});

 private:
  [[nodiscard]] Variable relations() const override { return w_relation_; }

  Variable w_relation_;
};

/// Sun et al., arXiv 1902.10197, with complex rows of D / 2 numbers, real parts before imaginary ones:
///
///     s_uvr = gamma - sum_j |h_uj exp(i phase_rj) - h_vj|
///
/// with the modulus of each complex number, as in the paper and in DGL-KE (PyG's RotatE takes the length of
/// the whole vector). Parameter: phase [relations, D / 2], in radians, as PyG's rel_emb; uniform in [-pi, pi)
/// at the start. DGL-KE's relations are phases times (gamma + 2) / (D / 2) / pi.
class RotatEPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive and `feats` is even.
  RotatEPredictor(Index num_rels, Index feats, Generator& gen, real gamma = 12);

 private:
  /// [cos(phase), sin(phase)].
  [[nodiscard]] Variable relations() const override;

  Variable phase_;
};

}  // namespace sar::inline SAR_PRECISION
