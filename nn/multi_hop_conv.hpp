/// Convolutions that apply one fixed operator over several hops: APPNP, TAGConv, SGConv.
///
/// On a homogeneous graph every hop is the whole graph. With message flow graphs there is one for each hop,
/// in the order of construct_mfgs, and the result belongs to the seeds. Degrees are those of the whole graph,
/// so that the result is what the whole graph gives. Edge weights, [local edges] or [local edges, 1], go with
/// the whole graph only, because message flow graphs do not know all out-edges of a node.
#pragma once

#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/aggregate_cache.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/linear.hpp>

#include <optional>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Approximate personalised PageRank of Gasteiger et al., arXiv 1810.05997; as dgl.nn.APPNPConv. The result
/// is h_k of
///
///     h_0 = x        h_{i+1} = (1 - alpha) D_in^-1/2 A D_out^-1/2 h_i + alpha x
///
/// Degrees count edges and are at least 1; with edge weights, A holds them and the degrees are their sums. In
/// training, edge_drop drops entries of A, others at each hop, and the same for every number of ranks.
///
/// No parameters. With `cached`, h_k of constant features on a whole graph is kept (AggregateCache).
/// Collective: k update_all; cached, one all_reduce from the second call on.
class APPNPConv : public Module {
 public:
  /// Throws InputError unless k >= 0, 0 <= alpha <= 1, 0 <= edge_drop < 1, and 0 = edge_drop if cached.
  APPNPConv(int k, double alpha, Generator& gen, double edge_drop = 0, bool cached = false);

  /// feat [local nodes, ...] -> the same shape. Throws, the same on every rank, InputError when a weight is
  /// not positive, and ShapeError when sources and destinations are not the same nodes (a block); cached,
  /// InputError also for features or edge weights that want a gradient, or whose tensor has other values than
  /// in the last call.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const Variable& edge_weight = {});
  /// feat [local sources of the first hop, ...] -> [local destinations of the last hop, ...]. Throws, the
  /// same on every rank, InputError unless there are k hops, and ShapeError when feat does not fit the first.
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
  /// Keeps [x, S x, ..., S^k x] of constant features on a whole graph (AggregateCache), [local nodes,
  /// (k + 1) in], which W then multiplies as a whole. Rows travel in the first call only.
  bool cached = false;
};

/// Du et al., arXiv 1710.10370; as dgl.nn.TAGConv:
///
///     y = [x, S x, ..., S^k x] W^T + b        S = D^-1/2 A D^-1/2
///
/// with D the in-degrees, at least 1. With edge weights, S is that of APPNPConv.
///
/// Parameters: lin.weight W [out, (k + 1) in], Xavier-normal with ReLU's gain at the start, lin.bias b [out].
/// The parts W_i of W are applied one by one; where that makes rows narrower before the aggregation, by
/// Horner's rule: x W_0 + S (x W_1 + S (x W_2 + ...)). Collective: k update_all; cached, one all_reduce from
/// the second call on.
class TAGConv : public Module {
 public:
  /// Throws InputError unless widths are positive and k >= 0.
  TAGConv(Index in_feats, Index out_feats, Generator& gen, const TAGConvOptions& options = {});

  /// feat [local nodes, in] -> [local nodes, out]. Errors as APPNPConv, those of `cached` too.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const Variable& edge_weight = {}) const;
  [[nodiscard]] Variable operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const;

 private:
  template <class Hops>
  [[nodiscard]] Variable apply(const Hops& hops, const Variable& feat) const;

  int k_;
  Index in_feats_;
  Linear lin_;
  mutable AggregateCache cache_;
};

struct SGConvOptions {
  int k = 1;  ///< hops
  bool bias = true;
  /// Keeps S^k x of constant features on a whole graph (AggregateCache), [local nodes, in], which then always
  /// comes before the product. Rows travel in the first call only.
  bool cached = false;
};

/// Wu et al., arXiv 1902.07153; as dgl.nn.SGConv, with S as in TAGConv:
///
///     y = S^k x W^T + b
///
/// Parameters: fc.weight W [out, in], Xavier-uniform at the start, fc.bias b [out], zero. Unless cached, the
/// product goes first where that makes rows narrower. Collective: k update_all; cached, one
/// all_reduce from the second call on.
class SGConv : public Module {
 public:
  /// Throws InputError unless widths are positive and k >= 0.
  SGConv(Index in_feats, Index out_feats, Generator& gen, const SGConvOptions& options = {});

  /// feat [local nodes, in] -> [local nodes, out]. Errors as APPNPConv; cached, InputError also for features
  /// or edge weights that want a gradient, or whose tensor has other values than in the last call.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const Variable& edge_weight = {});
  [[nodiscard]] Variable operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const;

 private:
  template <class Hops>
  [[nodiscard]] Variable apply(const Hops& hops, const Variable& feat) const;

  SGConvOptions options_;
  Linear fc_;
  AggregateCache cache_;
};

}  // namespace sar
