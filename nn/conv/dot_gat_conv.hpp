// SPDX-License-Identifier: MIT

/// Attention by similarity: dot product (DotGATConv) and cosine (AGNNConv).
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

}}  // namespace sar
