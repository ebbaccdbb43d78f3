/// Attention by similarity: dot product (DotGAT) and cosine (AGNN).
#pragma once

#include <sar/nn/attention_conv.hpp>

namespace sar::inline SAR_PRECISION {

/// As dgl.nn.DotGatConv, but a node without in-edges is no error. With H heads of D features and z = W x (for
/// each end its own W in a layer made with two widths):
///
///     y[v, h] = sum_{u -> v} alpha_uv[h] z_u[h]
///
///     alpha_uv[h] = softmax over the in-edges of v of <z_u[h], z_v[h]> / sqrt(D)
///
/// Parameters: fc.weight [H D, in], or fc_src.weight [H D, in_src] and fc_dst.weight [H D, in_dst], which
/// start as in Linear. Collective: one dot_attention.
class DotGatConv : public AttentionConv {
 public:
  /// Throws InputError unless widths and num_heads are positive.
  DotGatConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen);

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]} ->
  /// [local destinations, H, D]. Throws, the same on every rank, ShapeError when shapes do not fit.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat);
  /// The coefficients alpha [local edges, H, 1] in edge order. Memory: several numbers per edge and head.
  /// Collective.
  [[nodiscard]] Variable attention(const GraphShardManager& graph, const NodeFeatures& feat);

 private:
  [[nodiscard]] real scale() const;

  Projection fc_;
};

/// Thekumparampil et al., arXiv 1803.03735; as dgl.nn.AGNNConv, but a node without in-edges is no error:
///
///     y_v = sum_{u -> v} alpha_uv x_u
///
///     alpha_uv = softmax over the in-edges of v of beta cos(x_u, x_v)
///
/// Parameter: beta [1] (a buffer of that name unless learn_beta). Collective: one cosine_attention.
class AGNNConv : public Module {
 public:
  explicit AGNNConv(real init_beta = 1, bool learn_beta = true);

  /// feat [local sources, D] for both ends, or {[local sources, D], [local destinations, D]} -> [local
  /// destinations, D]. Throws, the same on every rank, ShapeError when shapes do not fit.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const NodeFeatures& feat) const;

 private:
  Variable beta_;
};

}  // namespace sar
