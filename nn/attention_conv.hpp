/// What the layers with attention heads have in common.
#pragma once

#include <sar/graph/message/attention.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/node_features.hpp>
#include <sar/nn/row_function.hpp>

#include <optional>
#include <string>

namespace sar::inline SAR_PRECISION {

/// Base of the layers with H heads of D features each. It has no parameters of its own.
class AttentionConv : public Module {
 public:
  [[nodiscard]] Index num_heads() const noexcept { return heads_; }      ///< H
  [[nodiscard]] Index out_feats() const noexcept { return out_feats_; }  ///< D

 protected:
  /// Throws InputError unless widths and the number of heads are positive and 0 <= dropout < 1.
  AttentionConv(std::string name, const InFeatures& in_feats, Index out_feats, Index num_heads,
                double feat_drop, double attn_drop, Generator& gen);

  /// Rows of both ends. When `shared`, dst are the first rows of src.
  struct Ends {
    Variable src, dst;
    bool shared;
  };
  /// The features at both ends, with feature dropout when `drops`. Throws ShapeError when features (or edge
  /// features, where the layer has edge_width > 0) do not fit the graph or the layer. Local.
  [[nodiscard]] Ends ends(const GraphShardManager& graph, const NodeFeatures& feat, bool drops = true,
                          const Variable& edge_feats = {}, Index edge_width = 0);
  /// Heads side by side, [n, H D] -> [n, H, D], and the inverse. In the same memory.
  [[nodiscard]] Variable cut_heads(Variable x) const;
  [[nodiscard]] Variable join_heads(Variable x) const;

  /// How a linear map starts: as Linear does, or Xavier-normal with ReLU's gain (torch's xavier_normal_), its
  /// bias at 0.
  enum class Start { linear, xavier };
  /// Makes a linear map [H D, in] and registers it.
  void make_linear(std::optional<Linear>& fc, const char* name, Index in, bool bias, Start start,
                   Generator& gen);
  /// The linear maps of both ends; without `dst`, both use `src`.
  struct Projection {
    std::optional<Linear> src, dst;
  };
  /// Makes "fc", or "fc_src" and "fc_dst" in a layer made with two widths; without biases.
  void make_projection(Projection& projection, Start start, Generator& gen);
  /// Both ends projected, [n, H, D]; computed once when both are the same.
  [[nodiscard]] Ends project(const Ends& ends, const Projection& projection) const;

  /// y + fc(x), or y + x without fc: y [n, H, D], x [n, in].
  [[nodiscard]] Variable add_residual(Variable y, const Variable& x, const std::optional<Linear>& fc) const;

  /// Attention dropout of one call of the fused operations.
  [[nodiscard]] AttentionOptions attention_options(Variable edge_weight = {});
  /// The same for coefficients in memory, [local edges, H, 1].
  [[nodiscard]] Variable drop_attention(const GraphShardManager& graph, Variable coefficients);

  /// A parameter [1, H, D], started by `xavier`.
  [[nodiscard]] Variable head_vector(Generator& gen) const;
  static void start_xavier(const Linear& fc, Generator& gen);

  InFeatures in_feats_;

 private:
  std::string name_;
  Index out_feats_, heads_;
  Dropout feat_drop_, attn_drop_;
};

// ---- a linear map per head: W [H D, F] is cut into H blocks W_h [D, F]. Nothing of size n x H D x F.

/// y[i, h] = W_h x[i, h]: x [n, H, F] -> [n, H, D].
[[nodiscard]] Variable head_linear(const Variable& x, const Variable& weight);
/// y[i, h] = W_h^T x[i, h]: x [n, H, D] -> [n, H, F].
[[nodiscard]] Variable head_linear_transposed(const Variable& x, const Variable& weight);

/// y[v, h] = sum over the in-edges e of v of coefficients[e, h] x[e]: coefficients [local edges, H, 1], x
/// [local edges, F] -> [local destinations, H, F]. Chunk of edges by chunk; no rows travel. Collective.
[[nodiscard]] Variable weighted_edge_sums(const GraphShardManager& graph, const Variable& coefficients,
                                          const Variable& x);

}  // namespace sar
