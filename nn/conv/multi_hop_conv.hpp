// SPDX-License-Identifier: MIT

/// Convolutions that apply one fixed operator over several hops: APPNP, TAGConv, SGConv.
///
/// On a homogeneous graph every hop uses the whole graph. With message flow graphs there is one graph per
/// hop, in the order of construct_mfgs, and the result has one row per seed. Degrees are those of the whole
/// graph, so that both give the same result. Edge weights, [local edges] or [local edges, 1], are supported
/// on the whole graph only, because message flow graphs do not know all out-edges of a node.
#pragma once

#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/conv/aggregate_cache.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Approximate personalized PageRank, Gasteiger et al., arXiv 1810.05997; equivalent to dgl.nn.APPNPConv.
/// Returns h_k of
///
///     h_0 = x        h_{i+1} = (1 - alpha) D_in^-1/2 A D_out^-1/2 h_i + alpha x
///
/// Degrees count edges and are at least 1. With edge weights, A contains the weights and the degrees are
/// their sums. In training, edge_drop drops entries of A, with new random draws in each hop that do not
/// depend on the number of ranks.
///
/// No parameters. With `cached`, h_k of constant features on a whole graph is cached (AggregateCache).
/// Collective: k update_all; if cached, one all_reduce from the second call on.
class APPNPConv : public Module {
 public:
  /// Throws InputError unless k >= 0, 0 <= alpha <= 1, 0 <= edge_drop < 1, or if cached with edge_drop > 0.
  APPNPConv(int k, double alpha, Generator& gen, double edge_drop = 0, bool cached = false);

  /// feat [local nodes, ...] -> the same shape. Throws the same exception on every rank: InputError if a
  /// weight is not positive, ShapeError if sources and destinations are not the same nodes (a block). If
  /// cached, also InputError for features or edge weights that require a gradient or whose values have
  /// changed since the previous call.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat,
                                    const Variable& edge_weight = {});
  /// feat [local sources of the first hop, ...] -> [local destinations of the last hop, ...]. Throws the same
  /// exception on every rank: InputError unless there are k hops, ShapeError if feat does not match the first
  /// hop.
  [[nodiscard]] Variable operator()(std::span<const MessageFlowGraph> hops, const Variable& feat);

 private:
  int k_;
  double alpha_;
  Dropout edge_drop_;
  AggregateCache cache_;
};

struct TAGConvOptions {
  int k = 2;  ///< hops
  bool bias = true;
  /// Caches [x, S x, ..., S^k x] of constant features on a whole graph (AggregateCache), [local nodes, (k +
  /// 1) in]; W then multiplies all of it at once. Halo rows are fetched in the first call only.
  bool cached = false;
};

/// Du et al., arXiv 1710.10370; equivalent to dgl.nn.TAGConv:
///
///     y = [x, S x, ..., S^k x] W^T + b        S = D^-1/2 A D^-1/2
///
/// with the in-degrees D, at least 1. With edge weights, S is that of APPNPConv.
///
/// Parameters: lin.weight W [out, (k + 1) in], Xavier-normal with the gain of ReLU; lin.bias b [out]. The
/// parts W_i of W are applied one at a time. Where the product makes rows narrower, it precedes the
/// aggregation, by Horner's rule:
///
///     x W_0 + S (x W_1 + S (x W_2 + ...))
///
/// Collective: k update_all; if cached, one all_reduce from the second call on.
class TAGConv : public Module {
 public:
  /// Throws InputError unless widths are positive and k >= 0.
  TAGConv(Index in_feats, Index out_feats, Generator& gen, const TAGConvOptions& options = {});

  /// feat [local nodes, in] -> [local nodes, out]. Errors as in APPNPConv, including those of `cached`.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat,
                                    const Variable& edge_weight = {}) const;
  [[nodiscard]] Variable operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const;

 private:
  int k_;
  Index in_feats_;
  Linear lin_;
  mutable AggregateCache cache_;
};

struct SGConvOptions {
  int k = 1;  ///< hops
  bool bias = true;
  /// Caches S^k x of constant features on a whole graph (AggregateCache), [local nodes, in]. The aggregation
  /// then always precedes the product, and halo rows are fetched in the first call only.
  bool cached = false;
};

/// Wu et al., arXiv 1902.07153; equivalent to dgl.nn.SGConv, with S as in TAGConv:
///
///     y = S^k x W^T + b
///
/// Parameters: fc.weight W [out, in], Xavier-uniform; fc.bias b [out], zero. Unless cached, the product
/// precedes the aggregation where it makes rows narrower. Collective: k update_all; if cached, one all_reduce
/// from the second call on.
class SGConv : public Module {
 public:
  /// Throws InputError unless widths are positive and k >= 0.
  SGConv(Index in_feats, Index out_feats, Generator& gen, const SGConvOptions& options = {});

  /// feat [local nodes, in] -> [local nodes, out]. Errors as in APPNPConv, including those of `cached`.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat,
                                    const Variable& edge_weight = {});
  [[nodiscard]] Variable operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const;

 private:
  SGConvOptions options_;
  Linear fc_;
  AggregateCache cache_;
};

}}  // namespace sar
