// SPDX-License-Identifier: MIT

/// Convolutions with a function of each edge: EdgeConv, CFConv, NNConv; features of edges from positions.
#pragma once

#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <memory>
#include <optional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

// Edge features computed from node positions.

/// Returns the relative position and the distance of both ends of each local edge u -> v. With positions x
/// [local sources, dim], or {[local sources, dim], [local destinations, dim]}:
///
///     d_uv = x_u + s_uv - x_v
///
///     result: (d_uv, |d_uv|)  [local edges, dim + 1], in the graph's edge order
///
/// `shifts` s [local edges, dim], in the same order, select the periodic image of u that an edge comes from:
/// each is an integer combination of the cell vectors. The default is 0. Differentiable in the positions and
/// shifts; the gradient of a zero length is 0. Throws ShapeError on every rank if shapes do not match.
/// Collective: one apply_edges.
[[nodiscard]] Variable relative_positions(const Graph& graph, const NodeFeatures& positions,
                                          const Variable& shifts = {});

/// Returns the shift to the nearest periodic image for each edge, in a periodic box with side lengths L in
/// the unit of the positions:
///
///     s_uv,k = -L_k round((x_uk - x_vk) / L_k)        [local edges, dim], in the graph's edge order
///
/// Use it for graphs that contain each pair of nodes once. If a cutoff exceeds half a side, a node is near
/// several images of another node; the edge list then has one edge per image and must provide the shifts
/// itself. Positions may lie outside the box. Not differentiable. Throws the same exception on every rank:
/// ShapeError if shapes do not match, InputError unless all sides are positive and finite. Collective: one
/// apply_edges.
[[nodiscard]] Tensor minimum_image_shifts(const Graph& graph, const NodeFeatures& positions,
                                          std::span<const double> box);

/// Wang et al., arXiv 1801.07829; equivalent to dgl.nn.EdgeConv without batch norm:
///
///     y_v = max_{u -> v} theta(x_v - x_u) + phi(x_v)
///
/// A node without in-edges yields 0.
///
/// Parameters, as in Linear: theta.weight and phi.weight [out, in], theta.bias and phi.bias [out]. Because
/// theta is linear, the halo rows are W_theta x_u, and all terms of x_v are added after the maximum.
/// Collective: one update_all.
class EdgeConv : public Module {
 public:
  /// Throws InputError unless widths are positive.
  EdgeConv(Index in_feats, Index out_feats, Generator& gen);

  /// feat [local sources, in] for both ends, or {[local sources, in], [local destinations, in]} -> [local
  /// destinations, out]. Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat) const;

 private:
  Linear theta_, phi_;
};

// Continuous-filter convolution of SchNet.

/// Returns log(1 + exp(x)) - log 2, computed without overflow.
[[nodiscard]] Variable shifted_softplus(Variable x);

/// SchNet's convolution, Schuett et al., arXiv 1706.08566; equivalent to dgl.nn.CFConv:
///
///     y_v = out(sum_{u -> v} node(x_u) * edge(e))
///
///     node(x) = W_n x + b_n    edge(e) = s(W_2 s(W_1 e + b_1) + b_2)    out(h) = s(W_o h + b_o)
///
/// with the shifted softplus s. A node without in-edges yields out(0).
///
/// Parameters, as in Linear, each with weight and bias: project_edge.0 [hidden, edge_in], project_edge.2
/// [hidden, hidden], project_node [hidden, node_in], project_out.0 [out, hidden]. Filters are computed for
/// options().edge_chunk edges at a time. Collective: one update_all.
class CFConv : public Module {
 public:
  /// Throws InputError unless all widths are positive.
  CFConv(Index node_in_feats, Index edge_in_feats, Index hidden_feats, Index out_feats, Generator& gen);

  /// feat [local sources, node_in], edge_feats [local edges, edge_in] -> [local destinations, out]. The graph
  /// may be bipartite. Throws ShapeError if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat,
                                    const Variable& edge_feats) const;

 private:
  Index node_in_feats_, edge_in_feats_;
  std::shared_ptr<Sequential> project_edge_;  // shared with messages on the tape
  Linear project_node_;
  Sequential project_out_;
};

// Convolution with a weight matrix computed for each edge.

struct NNConvOptions {
  Reduce aggregator = Reduce::mean;  ///< sum, mean, max, or min
  bool residual = false;
  bool bias = true;
};

/// Gilmer et al., arXiv 1704.01212; equivalent to dgl.nn.NNConv:
///
///     y_v = aggregate_{u -> v} x_u W(e) + b  (+ res(x_v))
///
/// where W(e) is f(e) as a matrix [in, out].
///
/// For max and min, the products x_ui W_io are reduced before the sum over i.
///
/// Parameters: bias b [out], zero; edge_func.*, the parameters of f; with a residual and in_dst != out,
/// res_fc.weight [out, in_dst], Xavier-normal with the gain of ReLU (otherwise res is the identity). Matrices
/// are computed for options().edge_chunk edges at a time. Collective: one update_all.
class NNConv : public Module {
 public:
  /// edge_func maps edge features to rows of in_src * out values. Throws InputError unless the widths are
  /// positive and there is an edge_func.
  NNConv(const InFeatures& in_feats, Index out_feats, RowFunction edge_func, Generator& gen,
         const NNConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]};
  /// edge_feats [local edges, ...] -> [local destinations, out]. Throws ShapeError on every rank if shapes do
  /// not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats) const;

 private:
  InFeatures in_feats_;
  Index out_feats_;
  RowFunction edge_func_;
  NNConvOptions options_;
  Variable bias_;
  std::optional<Linear> res_fc_;
};
}}  // namespace sar
