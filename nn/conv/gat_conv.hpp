// SPDX-License-Identifier: MIT

/// Graph attention (GAT), without and with features of the edges.
#pragma once

#include <sar/nn/conv/attention_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

struct GATConvOptions {
  double feat_drop = 0;  ///< dropout of the input features
  double attn_drop = 0;  ///< dropout of the attention coefficients
  real negative_slope = real(0.2);
  bool residual = false;
  Activation activation = {};  ///< of the result; optional
  bool bias = true;
};

/// Velickovic et al., arXiv 1710.10903; equivalent to dgl.nn.GATConv, but a node without in-edges is allowed.
/// With H heads of D features and z = W x, where a layer with two input widths has one W for each end:
///
///     y[v, h] = sum_{u -> v} w_uv alpha_uv[h] z_u[h] + residual_v[h] + bias[h]
///
///     alpha_uv[h] = softmax over the in-edges of v of leaky_relu(<attn_l[h], z_u[h]> + <attn_r[h], z_v[h]>)
///
/// Parameters: attn_l, attn_r [1, H, D]; fc.weight [H D, in], or fc_src.weight [H D, in_src] and
/// fc_dst.weight [H D, in_dst]; bias [H D]. With a residual and in_dst != H D, res_fc.weight [H D, in_dst]
/// and res_fc.bias [H D] replace the bias; otherwise the residual is x_v itself. Weights are Xavier-normal
/// with the gain of ReLU (torch's xavier_normal_), biases 0.
///
/// The backward pass keeps x, z, y and two values per head and node, but nothing per edge. At a node with one
/// in-edge, the gradient of the scores is exactly 0; where all scores have one sign, so is that of
/// <attn_r[h], z_v[h]>, which the softmax then cancels. Collective: one
/// gat_attention.
///
/// @code
/// GATConv conv(64, /*out_feats=*/8, /*num_heads=*/4, gen);
/// const Variable y = conv(graph, features);  // [local destinations, 4, 8]
/// @endcode
class GATConv : public AttentionConv {
 public:
  /// Throws InputError unless widths and num_heads are positive and 0 <= dropout < 1.
  GATConv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen,
          const GATConvOptions& options = {});

  /// feat [local sources, in] for both ends, or {[local sources, in_src], [local destinations, in_dst]} ->
  /// [local destinations, H, D]. edge_weight w [local edges] is optional. Throws ShapeError on every rank if
  /// shapes do not match.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat,
                                    const Variable& edge_weight = {});
  /// Collective. Returns the coefficients w alpha [local edges, H, 1] in edge order, without dropout.
  /// Memory: several values per edge and head.
  [[nodiscard]] Variable attention(const Graph& graph, const NodeFeatures& feat,
                                   const Variable& edge_weight = {});

 private:
  GATConvOptions options_;
  Projection fc_;
  std::optional<Linear> res_fc_;
  Variable attn_l_, attn_r_, bias_;
};

struct GATv2ConvOptions {
  double feat_drop = 0;  ///< dropout of the input features
  double attn_drop = 0;  ///< dropout of the attention coefficients
  real negative_slope = real(0.2);
  bool residual = false;
  Activation activation = {};  ///< of the result; optional
  bool bias = true;            ///< of the projections
  bool share_weights = false;  ///< fc_src serves both ends
};

/// Brody, Alon, Yahav, arXiv 2105.14491; equivalent to dgl.nn.GATv2Conv, but a node without in-edges is
/// allowed:
///
///     y[v, h] = sum_{u -> v} alpha_uv[h] z_u[h] + residual_v[h],   z_u = W_src x_u + b_src
///
///     alpha_uv[h] = softmax over the in-edges of v of <attn[h], leaky_relu(z_u[h] + W_dst x_v[h] + b_dst[h])>
///
/// Parameters: attn [1, H, D]; fc_src.weight [H D, in_src], fc_src.bias [H D]; without share_weights,
/// fc_dst.weight [H D, in_dst], fc_dst.bias [H D]; with a residual and in_dst != H D, res_fc.weight,
/// res_fc.bias. Initialized as in GATConv. Collective: one gatv2_attention.
class GATv2Conv : public AttentionConv {
 public:
  /// Throws InputError unless the widths and num_heads are positive and 0 <= dropout < 1, or if share_weights
  /// and the widths differ.
  GATv2Conv(const InFeatures& in_feats, Index out_feats, Index num_heads, Generator& gen,
            const GATv2ConvOptions& options = {});

  /// Shapes and errors as in GATConv.
  [[nodiscard]] Variable operator()(const Graph& graph, const NodeFeatures& feat);
  /// Collective. Returns the coefficients alpha [local edges, H, 1] in edge order, without dropout. Memory:
  /// several values per edge and head.
  [[nodiscard]] Variable attention(const Graph& graph, const NodeFeatures& feat);

 private:
  GATv2ConvOptions options_;
  Projection fc_;
  std::optional<Linear> res_fc_;
  Variable attn_;
};

// Graph attention with edge features.

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
