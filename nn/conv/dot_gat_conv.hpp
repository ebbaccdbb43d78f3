// SPDX-License-Identifier: MIT

/// Attention by similarity: dot product (DotGatConv), cosine (AGNNConv), graph transformer (TransformerConv).
#pragma once

#include <sar/nn/conv/attention_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Dot-product attention; equivalent to dgl.nn.DotGatConv, but a node without in-edges is allowed. With H
/// heads of D features and z = W x, where a layer with two input widths has one W for each end:
///
///     y[v, h] = sum_{u -> v} alpha_uv[h] z_u[h]
///
///     alpha_uv[h] = softmax over the in-edges of v of <z_u[h], z_v[h]> / sqrt(D)
///
/// Parameters: fc.weight [H D, in], or fc_src.weight [H D, in_src] and fc_dst.weight [H D, in_dst],
/// initialized as in Linear. Collective: one dot_attention.
class DotGatConv : public AttentionConv {
 public:
  /// Throws InputError unless widths and num_heads are positive.
  DotGatConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen);

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]} ->
  /// [local destinations, H, D]. Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat);
  /// Collective. Returns the coefficients alpha [local edges, H, 1] in edge order. Memory: several values
  /// per edge and head.
  [[nodiscard]] Variable attention(const Graph& graph, const NodeFeatures& feat);

 private:
  Projection fc_;
};

/// Thekumparampil et al., arXiv 1803.03735; equivalent to dgl.nn.AGNNConv, but a node without in-edges is
/// allowed:
///
///     y_v = sum_{u -> v} alpha_uv x_u
///
///     alpha_uv = softmax over the in-edges of v of beta cos(x_u, x_v)
///
/// Parameter: beta [1]; without learn_beta a buffer of the same name. Collective: one cosine_attention.
class AGNNConv : public Module {
 public:
  explicit AGNNConv(real init_beta = 1, bool learn_beta = true);

  /// feat [local sources, D] for both ends, or {[local sources, D], [local destinations, D]} -> [local
  /// destinations, D]. Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat) const;

 private:
  Variable beta_;
};

// Graph transformer convolution.

struct TransformerConvOptions {
  bool concat = true;       ///< heads side by side; otherwise their mean
  bool beta = false;        ///< a learned gate between the skip connection and the aggregate
  double dropout = 0;       ///< of the attention coefficients
  Index edge_dim = 0;       ///< width of the edge features; 0: no edge features
  bool bias = true;         ///< of lin_key, lin_query, lin_value and lin_skip; before PyG 2.7 of lin_skip
  bool root_weight = true;  ///< whether there is a skip connection; required by `beta`
};

/// Collective. Shi et al., arXiv 2009.03509; equivalent to torch_geometric.nn.TransformerConv. With H heads
/// of D features, k, q, v = lin_key(x), lin_query(x), lin_value(x) and f = lin_edge(e), which is 0 without
/// edge features:
///
///     a[v, h] = sum_{e: u -> v} alpha_e[h] (v_u[h] + f_e[h])
///
///     alpha_e[h] = softmax over the in-edges of v of <q_v[h], k_u[h] + f_e[h]> / sqrt(D)
///
///     y_v = a_v + s_v
///
/// with s = lin_skip(x), or 0 without root_weight. a_v has the heads side by side, or their mean without
/// concat. With beta:
///
///     y_v = b_v s_v + (1 - b_v) a_v,  b = sigmoid(lin_beta([a, s, a - s]))
///
/// Parameters: lin_key, lin_query, lin_value .weight [H D, in], .bias [H D]; lin_edge.weight [H D, edge_dim];
/// for y of width W, lin_skip.weight [W, in], .bias [W] and lin_beta.weight [1, 3 W]. All are initialized as
/// in Linear. As in PyG, lin_skip exists even without root_weight and then gets no gradient. lin_key.bias is
/// frozen: it adds one number to all scores of a destination, which the softmax cancels.
///
/// Without edge features: one dot_attention, and nothing per edge in memory. With edge features, f is never
/// materialized:
///
///     <q_v, f_e> = <lin_edge^T q_v, e>
///
/// and lin_edge is applied to the sums of coefficients times e. Memory besides the operands is then several
/// values per edge and head, and H edge_dim values per destination.
class TransformerConv : public AttentionConv {
 public:
  /// Throws InputError unless widths and num_heads are positive, edge_dim >= 0 and 0 <= dropout < 1.
  TransformerConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen,
                  const TransformerConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]};
  /// edge_feats [local edges, edge_dim] in edge order -> [local destinations, H D], or D without concat.
  /// Throws ShapeError on every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_feats = {});
  /// Collective. Returns the coefficients alpha [local edges, H, 1] in edge order, without dropout.
  [[nodiscard]] Variable attention(const Graph& graph, const NodeFeatures& feat,
                                   const Variable& edge_feats = {});

 private:
  [[nodiscard]] Variable coefficients(const Graph& graph, const Ends& x, const Variable& edge_feats) const;
  [[nodiscard]] Variable aggregate(const Graph& graph, const Ends& x, const Variable& edge_feats);

  TransformerConvOptions options_;
  Linear lin_key_, lin_query_, lin_value_;
  std::optional<Linear> lin_edge_, lin_skip_, lin_beta_;
};
}}  // namespace sar
