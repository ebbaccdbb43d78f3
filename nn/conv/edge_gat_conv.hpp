// SPDX-License-Identifier: MIT

/// Graph attention with edge features.
#pragma once

#include <sar/nn/conv/attention_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

struct EdgeGATConvOptions {
  double feat_drop = 0;  ///< dropout of the input features
  double attn_drop = 0;  ///< dropout of the attention coefficients
  real negative_slope = real(0.2);
  bool residual = true;
  Activation activation = {};  ///< of the result; optional
  bool bias = true;
};

/// Collective. Equivalent to dgl.nn.EdgeGATConv, but a node without in-edges is allowed. With H heads of D
/// features, f = W_edge e and z = W x, where a layer with two input widths has one W for each end:
///
///     y[v, h] = sum_{e: u -> v} alpha_e[h] (z_u[h] + f_e[h]) + W_res x_v + bias[h]
///
///     alpha_e[h] = softmax over the in-edges of v of
///                  leaky_relu(<attn_l[h], z_u[h]> + <attn_r[h], z_v[h]> + <attn_edge[h], f_e[h]>)
///
/// Parameters: attn_l, attn_r, attn_edge [1, H, D]; fc.weight [H D, in], or fc_src.weight and fc_dst.weight;
/// fc_edge.weight [H D, edge_feats]; res_fc.weight [H D, in_dst]; bias [H D]. Initialized as in GATConv.
///
/// f is never materialized: W_edge is applied to the sums of coefficients times e. Memory besides the
/// operands: several values per edge and head, and H edge_feats values per destination.
class EdgeGATConv : public AttentionConv {
 public:
  /// Throws InputError unless widths and num_heads are positive and 0 <= dropout < 1.
  EdgeGATConv(const InFeatures& in_feats, Index edge_feats, Index out_feats, Index num_heads, Generator& gen,
              const EdgeGATConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]};
  /// edge_feats [local edges, edge_feats] in edge order -> [local destinations, H, D]. Throws ShapeError on
  /// every rank if shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat, const Variable& edge_feats);
  /// Collective. Returns the coefficients alpha [local edges, H, 1] in edge order, without dropout.
  [[nodiscard]] Variable attention(const Graph& graph, const NodeFeatures& feat, const Variable& edge_feats);

 private:
  [[nodiscard]] Variable coefficients(const Graph& graph, const Ends& z, const Variable& edge_feats) const;

  EdgeGATConvOptions options_;
  Linear fc_edge_;
  Projection fc_;
  std::optional<Linear> res_fc_;
  Variable attn_l_, attn_r_, attn_edge_, bias_;
};

}}  // namespace sar
