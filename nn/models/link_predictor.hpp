// SPDX-License-Identifier: MIT

/// Link predictors: compute a score for a pair of nodes from the representations of both nodes, as
/// dgl.nn.EdgePredictor and the predictors of DGL's link prediction guide.
///
/// A predictor can be called in two ways. Given the rows of both ends, one row per pair, it is local; the
/// rows come from a mini-batch (gather_rows) or from pairs of any nodes of all ranks (NodePairs). Given a
/// graph, it scores all edges, [local edges, ...] in the graph's edge order, without storing the end rows of
/// each edge; it calls apply_edges once and throws ShapeError on every rank if the representations do not
/// match the graph.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/node_features.hpp>
#include <sar/nn/modules/row_distance.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Dot product:
///
///     s_uv = h_u . h_v
///
/// No parameters. Collective on a graph.
class DotPredictor : public Module {
 public:
  DotPredictor() = default;
  /// h_src [n, D] and h_dst [n, D] -> [n, 1]. Throws ShapeError if the shapes differ.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst) const;
  /// h [local nodes, D], or a pair for both ends -> [local edges, 1].
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& h) const;
};

struct MLPPredictorOptions {
  Index hidden = 0;  ///< width of the hidden layer; 0: width of the representations
  Index out = 1;     ///< values per pair: 1 for a score, more for edge classes
};

/// Multi-layer perceptron:
///
///     s_uv = W_2 relu(W_1 [h_u, h_v] + b_1) + b_2
///
/// Parameters, with the names of DGL's example and initialized as in Linear: W1.weight [hidden, 2 D],
/// W1.bias, W2.weight [out, hidden], W2.bias. The halves of W_1 are applied to the two ends separately; on a
/// graph, once per node instead of once per edge. Collective on a graph.
///
/// @code
/// const MLPPredictor predictor(64, gen);
/// const Variable scores = predictor(graph, features);  // [local edges, 1]
/// @endcode
class MLPPredictor : public Module {
 public:
  /// Throws InputError unless the widths are positive.
  MLPPredictor(Index feats, Generator& gen, const MLPPredictorOptions& options = {});

  /// h_src [n, D] and h_dst [n, D] -> [n, out]. Throws ShapeError for other shapes.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst) const;
  /// h [local nodes, D], or a pair for both ends -> [local edges, out].
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& h) const;

 private:
  /// Apply one half of W_1 to rows of sources or destinations.
  [[nodiscard]] Variable hidden_of_src(const Variable& h) const;
  [[nodiscard]] Variable hidden_of_dst(const Variable& h) const;

  Index feats_;
  Linear w1_, w2_;
};

/// An end of an edge.
enum class EdgeEnd { source, destination };

/// Base class of scores of an edge of relation r, as in knowledge graphs. A node and a relation form a query,
/// which is compared with the row of the node at the other end:
///
///     s_uvr = compare(query(h_u, r), h_v) = compare(query'(h_v, r), h_u)
///
/// where compare is a dot product, or gamma minus a distance. This form allows ranking all nodes as the other
/// end of an edge (ranking.hpp). Collective on a graph.
class RelationPredictor : public Module {
 public:
  /// h_src [n, D] and h_dst [n, D], and the relation of each pair -> [n, 1]. Throws ShapeError for other
  /// shapes, InputError for an invalid relation.
  [[nodiscard]] Variable operator()(const Variable& h_src, const Variable& h_dst, RowIds rels) const;
  /// h [local nodes, D], or a pair for both ends, and the relation of each local edge -> [local edges, 1].
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& h, RowIds rels) const;

  /// Local. Returns queries [n, D] for the end `wanted` from the rows h [n, D] of the given ends. Throws as
  /// above.
  [[nodiscard]] Variable query(EdgeEnd wanted, const Variable& h, RowIds rels) const;
  /// How queries are compared with node rows.
  [[nodiscard]] RowComparison comparison() const noexcept { return comparison_; }
  /// Returns D.
  [[nodiscard]] Index width() const noexcept { return width_; }
  [[nodiscard]] Index num_rels() const noexcept { return num_rels_; }

 protected:
  /// Computes queries for destinations or sources from rows of nodes and of relations. It is a stateless
  /// function, because records of graph operations hold it and may outlive the predictor.
  using Query = Variable (*)(EdgeEnd wanted, const Variable& h, const Variable& w);
  RelationPredictor(const char* name, Index num_rels, Index width, Query query, RowComparison comparison,
                    real gamma = 0);
  /// Registers the parameter that describes the relations, with its initial values.
  void start_relations(const char* name, const Tensor& values);
  /// Returns the rows of the relations [relations, D] that queries read: by default the parameter.
  [[nodiscard]] virtual Variable relations() const { return parameter_; }

  Variable parameter_;

 private:
  void require_relations(Index pairs, const RowIds& rels) const;
  const char* name_;
  Index num_rels_, width_;
  Query query_;
  RowComparison comparison_;
  real gamma_;
};

/// DistMult, Yang et al., arXiv 1412.6575:
///
///     s_uvr = sum_j h_uj w_rj h_vj
///
/// with a vector w_r for each relation r. Parameter: w_relation [relations, D], Xavier-uniform with the gain
/// of ReLU.
class DistMultPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive.
  DistMultPredictor(Index num_rels, Index feats, Generator& gen);
};

/// ComplEx, Trouillon et al., arXiv 1606.06357. A row holds D / 2 complex numbers, real parts before
/// imaginary parts:
///
///     s_uvr = Re(sum_j h_uj w_rj conj(h_vj))
///
/// Parameter: w_relation [relations, D], Xavier-uniform with the gain of ReLU.
class ComplExPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive and `feats` is even.
  ComplExPredictor(Index num_rels, Index feats, Generator& gen);
};

struct TransEOptions {
  real gamma = 12;  ///< the score of an edge whose ends match
  int norm = 1;     ///< 1 or 2
};

/// TransE, Bordes et al. 2013; equivalent to DGL-KE's TransE_l1 and TransE_l2:
///
///     s_uvr = gamma - |h_u + w_r - h_v|
///
/// where |.| is the sum of absolute values (norm 1) or the Euclidean length (norm 2), with gradient 0 at a
/// difference of 0. Rows are not normalized to length 1. Parameter: w_relation [relations, D], uniform in
/// [-e, e) with e = (gamma + 2) / D.
class TransEPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive, and for another norm than 1 or 2.
  TransEPredictor(Index num_rels, Index feats, Generator& gen, const TransEOptions& options = {});
};

/// RotatE, Sun et al., arXiv 1902.10197. A row holds D / 2 complex numbers, real parts before imaginary
/// parts:
///
///     s_uvr = gamma - sum_j |h_uj exp(i phase_rj) - h_vj|
///
/// with the modulus of each complex number, as in the paper and in DGL-KE (PyG's RotatE uses the length of
/// the whole vector). Parameter: phase [relations, D / 2] in radians, as PyG's rel_emb; uniform in [-pi, pi).
/// To convert relations of DGL-KE to phases, divide them by (gamma + 2) / (D / 2) / pi.
class RotatEPredictor : public RelationPredictor {
 public:
  /// Throws InputError unless both are positive and `feats` is even.
  RotatEPredictor(Index num_rels, Index feats, Generator& gen, real gamma = 12);

 private:
  /// Returns [cos(phase), sin(phase)].
  [[nodiscard]] Variable relations() const override { return unit_complex(parameter_); }
};

// Losses of link prediction. They compare the scores of pairs that are edges (positives) with the scores of
// pairs that are not (negatives).
//
// Every function is collective and has the meaning and errors of nn/train/loss.hpp. Each rank has some
// pairs, or none; the loss is the mean over the pairs of ALL ranks, [1], with the same bits on every rank.
// The backward pass does not communicate. Throws InputError on every rank if no rank has a pair.
//
// Scores are [n], [n, 1] or any shape with n elements. Losses that compare each positive with its own
// negatives take k negatives per positive, [n, k] or [n k, 1], with the negatives of one positive adjacent.
// Throws ShapeError if the numbers do not match.

/// Returns the binary cross entropy over n positives and m negatives; n and m are independent:
///
///     -1/(n + m) (sum_i log sigmoid(p_i) + sum_j log(1 - sigmoid(q_j)))
Variable link_bce_with_logits(const Variable& positive, const Variable& negative, const Communicator& comm);

/// Returns the margin loss between each positive and its k negatives, as in DGL's guide:
///
///     1/(n k) sum_ij max(0, margin - p_i + q_ij)
Variable link_margin(const Variable& positive, const Variable& negative, const Communicator& comm,
                     double margin = 1);

/// Returns the InfoNCE loss of each positive and its k negatives (van den Oord et al., arXiv 1807.03748), at
/// temperature t > 0:
///
///     -1/n sum_i log(exp(p_i / t) / (exp(p_i / t) + sum_j exp(q_ij / t)))
///
/// Also throws InputError unless t > 0.
Variable info_nce(const Variable& positive, const Variable& negative, const Communicator& comm,
                  double temperature = 1);
}}  // namespace sar
