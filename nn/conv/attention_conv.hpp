// SPDX-License-Identifier: MIT

/// Base class and helpers of the layers with attention heads.
#pragma once

#include <sar/graph/message/attention.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/node_features.hpp>

#include <optional>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Base class of the layers with H heads of D features each. It has no parameters of its own.
class AttentionConv : public Module {
 public:
  [[nodiscard]] Index num_heads() const noexcept { return heads_; }      ///< H
  [[nodiscard]] Index out_feats() const noexcept { return out_feats_; }  ///< D

 protected:
  /// Throws InputError unless the widths and the number of heads are positive and 0 <= dropout < 1.
  AttentionConv(std::string name, const InFeatures& in_feats, Index out_feats, Index num_heads,
                double feat_drop, double attn_drop, Generator& gen);

  /// Rows at the sources and destinations. If `shared`, dst are the first rows of src.
  struct Ends {
    Variable src, dst;
    bool shared;
  };
  /// Local. Returns the features at both ends, after feature dropout if `drops`. Throws ShapeError if the
  /// features (or edge features, if the layer has edge_width > 0) do not match the graph or the layer.
  [[nodiscard]] Ends ends(const Graph& graph, const NodeFeatures& feat, bool drops = true,
                          const Variable& edge_feats = {}, Index edge_width = 0);
  /// Reshape between heads side by side, [n, H D], and separate heads, [n, H, D]. Both are views of the same
  /// memory.
  [[nodiscard]] Variable cut_heads(Variable x) const;
  [[nodiscard]] Variable join_heads(Variable x) const;

  /// Initialization of a linear map: as Linear does, or Xavier-normal with the gain of ReLU (torch's
  /// xavier_normal_) and zero bias.
  enum class Start { linear, xavier };
  /// Creates a linear map with weight [H D, in] and registers it.
  void make_linear(std::optional<Linear>& fc, const char* name, Index in, bool bias, Start start,
                   Generator& gen);
  /// The linear maps of the sources and destinations. Without `dst`, both use `src`.
  struct Projection {
    std::optional<Linear> src, dst;
  };
  /// Creates "fc", or "fc_src" and "fc_dst" for a layer with two input widths. No biases.
  void make_projection(Projection& projection, Start start, Generator& gen);
  /// Projects the rows of both ends to [n, H, D]. Computes shared rows once. In mixed precision, and
  /// unless the destinations are a part of the sources, the fused attention operations give the rows up after
  /// the forward pass, and the backward pass computes them again.
  [[nodiscard]] Ends project(const Graph& graph, const Ends& ends, const Projection& projection) const;

  /// Returns y + fc(x), or y + x without fc: y [n, H, D], x [n, in].
  [[nodiscard]] Variable add_residual(Variable y, const Variable& x, const std::optional<Linear>& fc) const;

  /// Returns the options of a fused attention operation, with the attention dropout of this call.
  [[nodiscard]] AttentionOptions attention_options(Variable edge_weight = {});
  /// Applies the same attention dropout to materialized coefficients [local edges, H, 1].
  [[nodiscard]] Variable drop_attention(const Graph& graph, Variable coefficients);

  /// Makes `parameter` a parameter [1, H, D] with Xavier-normal initialization.
  void make_head_vector(const char* name, Variable& parameter, Generator& gen);
  /// Returns the softmax over the in-edges of scores [local edges, H] or [local edges, H, 1], as [local
  /// edges, H, 1].
  [[nodiscard]] Variable coefficients_of(const Graph& graph, Variable scores) const;
  /// Returns 1 / sqrt(D), the scale of dot products.
  [[nodiscard]] real dot_scale() const;

  static void start_xavier(const Linear& fc, Generator& gen);

  InFeatures in_feats_;

 private:
  std::string name_;
  Index out_feats_, heads_;
  Dropout feat_drop_, attn_drop_;
};

// ---- One linear map per head: W [H D, F] is a stack of H matrices W_h [D, F]. No temporary has H D F values
// per row.

/// Returns y[i, h] = W_h x[i, h]: x [n, H, F] -> [n, H, D].
[[nodiscard]] Variable head_linear(const Variable& x, const Variable& weight);
/// Returns y[i, h] = W_h^T x[i, h]: x [n, H, D] -> [n, H, F].
[[nodiscard]] Variable head_linear_transposed(const Variable& x, const Variable& weight);

/// Collective. Returns weighted sums of edge rows for each destination and head:
///
///     y[v, h] = sum over the in-edges e of v of coefficients[e, h] x[e]
///
/// coefficients [local edges, H, 1], x [local edges, F] -> [local destinations, H, F]. Processes the edges
/// in chunks; no halo rows are exchanged.
[[nodiscard]] Variable weighted_edge_sums(const Graph& graph, const Variable& coefficients,
                                          const Variable& x);
}}  // namespace sar
