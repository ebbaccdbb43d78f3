// SPDX-License-Identifier: MIT

/// Graph attention with a term per edge type.
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/nn/conv/attention_conv.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

struct SimpleHGNConvOptions {
  double feat_drop = 0;  ///< dropout of the input features
  double attn_drop = 0;  ///< dropout of the attention coefficients
  real negative_slope = real(0.2);
  bool residual = true;
  double beta = 0;             ///< weight of `previous`, the coefficients of the layer below, in [0, 1)
  Activation activation = {};  ///< of the result; optional
};

/// Lv et al., "Are we really making much progress?", KDD 2021 (SimpleHGN), with the parameters of OpenHGNN's
/// layer of this name. With H heads of D features, z = x W, and a learned row r_emb of edge_size values for
/// each edge type r:
///
///     y[v, h] = sum_{u -r-> v} alpha_uv[h] z_u[h] + residual(x_v)[h]
///
///     alpha_uv[h] = (1 - beta) a_uv[h] + beta previous_uv[h]
///
///     a_uv[h] = softmax over the in-edges of v of
///               leaky_relu(<a_l[h], z_u[h]> + <a_r[h], z_v[h]> + <a_e[h], (r_emb W_e)[h]>)
///
/// Parameters: edge_emb [edge types, edge_size]; W [in, H D]; W_e [edge_size, H edge_size]; a_l, a_r [1, H,
/// D]; a_e [1, H, edge_size]; residual.weight [H D, in] and residual.bias [H D]. All but residual are
/// Xavier-normal with the gain of ReLU (torch's xavier_normal_).
///
/// Nothing is kept per edge. With `previous`, the coefficients are kept and halo rows are fetched twice.
/// Collective: one typed_gat_attention, with `previous` also one update_all.
class SimpleHGNConv : public AttentionConv {
 public:
  /// Throws InputError unless the sizes and num_etypes are positive, 0 <= dropout < 1 and 0 <= beta < 1.
  SimpleHGNConv(Index in_feats, Index edge_size, Index head_size, Index num_heads, Index num_etypes,
                Generator& gen, const SimpleHGNConvOptions& options = {});

  /// x [local sources, in] -> [local destinations, H D]; the destinations must be the first rows of the
  /// sources (a homogeneous graph or a block). etypes: the type of each local edge, in the graph's edge
  /// order. previous: the coefficients of the layer below, [local edges, H, 1]; without them beta is 0.
  /// Throws the same exception on every rank: ShapeError if shapes do not match, InputError for an invalid
  /// type.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& x, const EdgeTypes& etypes,
                                    const Variable& previous = {});
  /// Collective. Returns the coefficients alpha [local edges, H, 1] in edge order, without dropout. Memory:
  /// several values per edge and head.
  [[nodiscard]] Variable attention(const Graph& graph, const Variable& x, const EdgeTypes& etypes,
                                   const Variable& previous = {});

 private:
  struct Projected {
    Variable z;           ///< [local sources, H, D]
    Variable score_dst;   ///< [local destinations, H]
    Variable score_type;  ///< [edge types, H]
    EdgeTypes types;      ///< checked
  };
  /// Checks the arguments and projects the rows.
  [[nodiscard]] Projected project_rows(const Graph& graph, const Variable& x, const EdgeTypes& etypes,
                                       const Variable& previous, bool drops);

  Index edge_size_;
  SimpleHGNConvOptions options_;
  Variable edge_emb_, w_, w_e_, a_l_, a_r_, a_e_;
  std::optional<Linear> residual_;
};

}}  // namespace sar
