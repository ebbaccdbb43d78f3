/// Relational graph convolution.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/layer_norm.hpp>
#include <sar/nn/row_function.hpp>

#include <optional>

namespace sar::inline SAR_PRECISION {

/// How the matrix of a relation r is made.
enum class Regularizer {
  none,   ///< W_r of its own
  basis,  ///< sum_b a_rb V_b over num_bases matrices that the relations share
  bdd,    ///< num_bases blocks on the diagonal
};

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
/// basis: rows of x are summed per basis, [local destinations, bases, in], before one product with all V.
/// none and bdd: the products of a chunk of edges are computed type by type. In all of them rows of x travel,
/// and neither a tensor of edges x out nor one result per relation is stored. Collective: one update_all.
class RelGraphConv : public Module {
 public:
  /// Throws InputError unless widths and num_relations are positive and, for bdd, multiples of num_bases.
  RelGraphConv(Index in_feats, Index out_feats, Index num_relations, Generator& gen,
               const RelGraphConvOptions& options = {});

  /// feat [local sources, in] -> [local destinations, out]; the destinations are the first rows of the
  /// sources (a homogeneous graph, or a block). etypes: the type of each local edge in the graph's
  /// edge order (see RowIds for who keeps them alive). norm: the factors c, [local edges, 1], or none.
  /// Throws, the same on every rank, ShapeError when shapes do not fit and InputError for a type that does
  /// not exist.
  [[nodiscard]] Variable operator()(const GraphShardManager& graph, const Variable& feat,
                                    const RowIds& etypes, const Variable& norm = {});

 private:
  /// A module for the names alone.
  struct TypedLinear : Module {
    using Module::register_parameter;
    Variable weight, coeff;
  };
  void check(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
             const Variable& norm) const;
  [[nodiscard]] Variable by_basis(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
                                  const Variable& norm) const;
  [[nodiscard]] Variable by_type(const GraphShardManager& graph, const Variable& feat, const RowIds& etypes,
                                 const Variable& norm) const;

  Index in_feats_, out_feats_, num_relations_;
  RelGraphConvOptions options_;
  TypedLinear linear_r_;
  Variable h_bias_, loop_weight_;
  std::optional<LayerNorm> layer_norm_;
  Dropout dropout_;
};

}  // namespace sar
