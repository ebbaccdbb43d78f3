/// Relational graph convolution.
#pragma once

#include <sar/graph/message/edge_types.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/layer_norm.hpp>
#include <sar/nn/row_function.hpp>
#include <sar/nn/typed_linear.hpp>

#include <optional>

namespace sar::inline SAR_PRECISION {

struct RelGraphConvOptions {
  Regularizer regularizer = Regularizer::none;
  Index num_bases = 0;  ///< 0: as many as relations
  bool bias = true;
  bool self_loop = true;
  bool layer_norm = false;
  double dropout = 0;
  Activation activation = {};  ///< before the dropout; optional
};

/// Schlichtkrull et al., arXiv 1703.06103; as dgl.nn.RelGraphConv, with a type r for each edge and optional
/// factors c:
///
///     y_v = dropout(f(norm(sum_{u -r-> v} c_e x_u W_r) + b + x_v W_0))
///
/// Parameters: linear_r.W, which is [relations, in, out] for none, [bases, in, out] for basis with
/// linear_r.coeff [relations, bases], and [relations, bases (in/bases) (out/bases)] for bdd; h_bias b [out];
/// loop_weight W_0 [in, out]; layer_norm_weight.{weight, bias} [out]. W starts uniform in +-1/sqrt(rows of
/// its matrices), coeff and W_0 Xavier-uniform with ReLU's gain, h_bias at zero.
///
/// Rows of x travel, and are added up per destination and type before they are multiplied (typed_sum). basis:
/// the W_r are composed once, unless all of them are larger than the sums per basis, [local destinations,
/// bases, in], which then take their place. Nothing is stored for an edge, nor a result per relation.
/// Collective: one pass of messages.
class RelGraphConv : public Module {
 public:
  /// Throws InputError unless widths and num_relations are positive and, for bdd, multiples of num_bases.
  RelGraphConv(Index in_feats, Index out_feats, Index num_relations, Generator& gen,
               const RelGraphConvOptions& options = {});

  /// feat [local sources, in] -> [local destinations, out]; the destinations are the first rows of the
  /// sources (a homogeneous graph, or a block). etypes: the type of each local edge in the graph's
  /// edge order; a list of Index is copied in every call. norm: the factors c, [local edges, 1], or none.
  /// Throws, the same on every rank, ShapeError when shapes do not fit and InputError for a type that does
  /// not exist.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const EdgeTypes& etypes, const Variable& norm = {});

 private:
  /// The types in numbers.
  [[nodiscard]] EdgeTypes check(const GraphShardManager& graph, const Variable& feat, const EdgeTypes& etypes,
                                const Variable& norm) const;
  /// Whether sums per basis are smaller than a matrix for each relation; the same on every rank.
  [[nodiscard]] bool sums_by_basis(const GraphShardManager& graph) const;
  [[nodiscard]] Variable by_basis(const GraphShardManager& graph, const Variable& feat,
                                  const EdgeTypes& etypes, const Variable& norm) const;

  Index in_feats_, out_feats_, num_relations_;
  RelGraphConvOptions options_;
  std::optional<TypedLinear> linear_r_;
  Variable h_bias_, loop_weight_;
  std::optional<LayerNorm> layer_norm_;
  Dropout dropout_;
};

}  // namespace sar
