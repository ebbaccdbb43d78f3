// SPDX-License-Identifier: MIT

/// Normalization of edge weights, and of the messages of each relation.
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Sums of edge weights over the out-edges of each source and over the in-edges of each destination.
struct WeightSums {
  Variable out;  ///< [local sources, 1]
  Variable in;   ///< [local destinations, 1]
};

/// Sums positive edge weights [local edges] or [local edges, 1] at both ends. Differentiable. Collective:
/// sends two values per halo row, and one gradient per halo row in the backward pass. Throws the same
/// exception on every rank: ShapeError if shapes do not match, InputError if a weight is not positive.
[[nodiscard]] WeightSums weight_sums(const Graph& graph, const Variable& edge_weight);

/// Returns 1 / sqrt(sum), and 1 where there is no edge.
[[nodiscard]] Variable inverse_root(const Variable& weight_sum);

enum class EdgeNorm {
  right,       ///< divide by the sum of the destination's in-weights
  both,        ///< divide by the roots of the source's out-weight sum and the destination's in-weight sum
  in_weights,  ///< divide by the roots of the in-weight sums of both ends
};

/// Collective. Returns normalized edge weights, right and both as dgl.nn.EdgeWeightNorm, in_weights as
/// PyG's gcn_norm:
///
///     right:       w_uv / sum_{u'} w_u'v
///
///     both:        w_uv / sqrt(sum_{v'} w_uv' sum_{u'} w_u'v)
///
///     in_weights:  w_uv / sqrt(sum_{t} w_tu sum_{u'} w_u'v), and 0 where a sum is 0
///
/// The result has the shape of edge_weight; arguments and errors are those of weight_sums. With in_weights,
/// a weight may be 0 or negative as long as no sum is negative, and sources and destinations must be the
/// same nodes; otherwise an InputError. Differentiable.
[[nodiscard]] Variable edge_weight_norm(const Graph& graph, const Variable& edge_weight,
                                        EdgeNorm norm = EdgeNorm::both);

/// Collective. Returns edge_weight_norm() of graph.edge_weight(), or of weights of 1 if the graph has none.
/// The graph keeps the result: later calls, also on other handles of it, do not compute it again. Message
/// flow graphs, sampled blocks and subgraphs with probabilities (SaintLoader) made afterwards have the values
/// of the whole graph; on message flow graphs and blocks made before, this is an InputError.
[[nodiscard]] Tensor kept_edge_weight_norm(const Graph& graph, EdgeNorm norm);

// Factors that turn the sum over a relation's messages into their mean.

/// Local. Returns, for each local edge in the graph's edge order, the factor of arXiv 1703.06103, as [local
/// edges, 1]:
///
///     c_e = 1 / |N_v^r|
///
/// where |N_v^r| is the number of in-edges of the edge's destination v that have the edge's type r.
/// edge_types: the type of each local edge; by default all edges have one type, so that the factors of a
/// node sum to 1. For RelGraphConv. In a block, only the block's edges count. Throws ShapeError if the
/// number of types is not the number of edges, InputError for a negative type.
[[nodiscard]] Tensor relation_norm(const Graph& graph, const EdgeTypes& edge_types = {});
}}  // namespace sar
