// SPDX-License-Identifier: MIT

/// Attention with types of edges: the heterogeneous graph transformer (HGT), and SimpleHGN.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/conv/attention_conv.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>

#include <optional>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct HGTConvOptions {
  double dropout = 0.2;   ///< of the result, before the skip connection
  bool use_norm = false;  ///< apply LayerNorm to the result
};

/// Hu et al., arXiv 2003.01332; equivalent to dgl.nn.HGTConv, for a graph with node and edge types. For a
/// node v of type t, H heads of D features and an edge u -> v of type r from a node of type s:
///
///     y_v = a_t dropout(o_v linear_a_t) + (1 - a_t) x_v
///
///     a = sigmoid(skip)
///
///     o_v[h] = sum_{u -> v} alpha_uv[h] v_u[h] relation_msg[h]_r
///
///     alpha_uv[h] = softmax over all in-edges of v of  relation_pri[h]_r k_u[h] relation_att[h]_r q_v[h]^T / sqrt(D)
///
///     k_u = x_u linear_k_s        v_u = x_u linear_v_s        q_v = x_v linear_q_t
///
/// In y_v, x_v is replaced by x_v residual_w if in_size is not H D. A node without in-edges has o_v = 0.
///
/// Parameters: skip [node types], ones; residual_w [in, H D] where needed, Xavier-uniform; linear_k.W,
/// linear_q.W, linear_v.W [node types, in, H D], linear_a.W [node types, H D, H D]; for each head h
/// relation_pri.h [edge types], ones, relation_att.h.W and relation_msg.h.W [edge types, D, D]; with
/// use_norm, norm.weight and norm.bias [H D]. Matrices are initialized as in TypedLinear.
///
/// Keys and values are fetched together, as rows of width 2 H D, once for all relations. No temporary grows
/// with the number of edges. Collective: one typed_attention.
class HGTConv : public Module {
 public:
  /// Throws InputError unless the sizes and numbers of types are positive and 0 <= dropout < 1.
  HGTConv(Index in_size, Index head_size, Index num_heads, Index num_ntypes, Index num_etypes, Generator& gen,
          const HGTConvOptions& options = {});

  /// x [local sources, in] -> [local destinations, H D]; the destinations must be the first rows of the
  /// sources (a homogeneous graph or a block). ntypes: the type of each local source. etypes: the type of
  /// each local edge, in the graph's edge order. Throws the same exception on every rank: ShapeError if
  /// shapes do not match, InputError for an invalid type.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& x, const RowIds& ntypes,
                                    const EdgeTypes& etypes);

  [[nodiscard]] Index num_heads() const noexcept { return heads_; }
  [[nodiscard]] Index head_size() const noexcept { return head_size_; }

 private:
  struct Parameters : Module {
    using Module::register_parameter;
    std::vector<Variable> of_head;
  };
  /// Returns [edge types, heads, head_size, head_size], the matrices of all heads, scaled by `pri` if
  /// with_pri.
  [[nodiscard]] Variable matrices_of_heads(const ModuleList<TypedLinear>& heads, bool with_pri) const;

  Index in_size_, head_size_, heads_, num_ntypes_, num_etypes_;
  Variable skip_, residual_w_;
  TypedLinear linear_k_, linear_q_, linear_v_, linear_a_;
  Parameters relation_pri_;
  ModuleList<TypedLinear> relation_att_, relation_msg_;
  Dropout drop_;
  std::optional<LayerNorm> norm_;
};

// Graph attention with a term per edge type.

struct SimpleHGNConvOptions {
  double feat_drop = 0;  ///< dropout of the input features
  double attn_drop = 0;  ///< dropout of the attention coefficients
  real negative_slope = real(0.2);
  bool residual = true;
  double beta = 0;             ///< weight of `previous`, the coefficients of the layer below, in [0, 1)
  Activation activation = {};  ///< of the result; optional
};

/// Lv et al., "Are we really making much progress?", KDD 2021 (SimpleHGN): the paper's formula, with the
/// names of parameters of OpenHGNN's layer, whose later versions have a W_e for each edge type. With H heads
/// of D features, z = x W, and a learned row r_emb of edge_size values for each edge type r:
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
