// SPDX-License-Identifier: MIT

/// Relational graph convolution (R-GCN).
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/norms.hpp>

#include <optional>

namespace sar { inline namespace SAR_PRECISION {

struct RelGraphConvOptions {
  Regularizer regularizer = Regularizer::none;
  Index num_bases = 0;  ///< 0: the number of relations
  bool bias = true;
  bool self_loop = true;
  bool layer_norm = false;
  double dropout = 0;
  Activation activation = {};  ///< before the dropout; optional
};

/// Schlichtkrull et al., arXiv 1703.06103; equivalent to dgl.nn.RelGraphConv, with a type r for each edge and
/// optional factors c:
///
///     y_v = dropout(f(norm(sum_{u -r-> v} c_e x_u W_r) + b + x_v W_0))
///
/// Parameters: linear_r.W, [relations, in, out] for none, [bases, in, out] with linear_r.coeff [relations,
/// bases] for basis, and [relations, bases (in/bases) (out/bases)] for bdd; h_bias b [out]; loop_weight W_0
/// [in, out]; layer_norm_weight.{weight, bias} [out]. W is uniform in +-1/sqrt(rows of its matrices), coeff
/// and W_0 are Xavier-uniform with the gain of ReLU, h_bias is zero.
///
/// The halo rows are those of x. They are summed per destination and type and then multiplied (typed_sum).
/// For basis, the matrices W_r are composed once, unless all of them need more memory than the sums per
/// basis, [local destinations, bases, in], which are then used instead. Nothing is stored per edge, and no
/// result per relation. Collective: one pass of messages.
class RelGraphConv : public Module {
 public:
  /// Throws InputError unless the widths and num_relations are positive and, for bdd, multiples of num_bases.
  RelGraphConv(Index in_feats, Index out_feats, Index num_relations, Generator& gen,
               const RelGraphConvOptions& options = {});

  /// feat [local sources, in] -> [local destinations, out]; the destinations must be the first rows of the
  /// sources (a homogeneous graph or a block). etypes: the type of each local edge, in the graph's edge
  /// order; a list of Index is copied in every call. norm: the factors c, [local edges, 1], optional. Throws
  /// the same exception on every rank: ShapeError if shapes do not match, InputError for an invalid type.
  [[nodiscard]] Variable operator()(const Graph& graph, const Variable& feat, const EdgeTypes& etypes,
                                    const Variable& norm = {});

 private:
  /// Returns whether sums per basis need less memory than one matrix per relation. The same on every rank.
  [[nodiscard]] bool sums_by_basis(const Graph& graph) const;
  [[nodiscard]] Variable by_basis(const Graph& graph, const Variable& feat, const EdgeTypes& etypes,
                                  const Variable& norm) const;

  Index in_feats_, out_feats_, num_relations_;
  RelGraphConvOptions options_;
  std::optional<TypedLinear> linear_r_;
  Variable h_bias_, loop_weight_;
  std::optional<LayerNorm> layer_norm_;
  Dropout dropout_;
};

}}  // namespace sar
