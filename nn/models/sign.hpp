// SPDX-License-Identifier: MIT

/// SIGN: propagates the features over several hops once and trains a row-wise network on the result.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/nn/models/propagation.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns [x, S x, ..., S^hops x] side by side, for x [local nodes, F]: [local nodes, (hops + 1) F], a
/// constant. Collective: `hops` calls of propagate(). Throws the same exception on every rank: InputError
/// unless hops >= 0, ShapeError as propagate().
[[nodiscard]] Tensor sign_features(const Graph& graph, const Tensor& x, int hops,
                                   HopNorm norm = HopNorm::symmetric);

struct SIGNOptions {
  int hops = 3;
  int layers = 2;  ///< Linear layers of each network
  double dropout = 0.5;
};

/// Frasca et al., arXiv 2004.11198, with the model of DGL's example:
///
///     y = project(dropout(prelu([ff_0(x), ff_1(S x), ..., ff_k(S^k x)])))
///
/// Each ff_i and project is a network of `layers` Linear with a PReLU (one slope, initially 0.25) and dropout
/// between them. Parameters: inception_ffs.I.layers.J.weight, .bias, inception_ffs.I.prelu.weight [1], the
/// same for project, and prelu.weight. Weights are Xavier-uniform with the gain of ReLU, biases zero. Local:
/// a result row depends on one input row only, so that training exchanges no halo rows.
///
/// @code
/// const Tensor hops = sign_features(graph, data.features, 2);  // once: [x, S x, S S x]
/// SIGN net(64, 32, 4, gen, {.hops = 2, .layers = 2});
/// const Variable y = net(hops, graph.src_ids());
/// @endcode
class SIGN : public Module {
 public:
  /// Throws InputError unless the widths and `layers` are positive, hops >= 0 and 0 <= dropout < 1.
  SIGN(Index in_feats, Index hidden, Index out_feats, Generator& gen, const SIGNOptions& options = {});

  /// x [n, (hops + 1) in_feats] from sign_features() -> [n, out_feats]. row_ids: the original ids of the
  /// rows, which key the dropout. Throws ShapeError for another width.
  [[nodiscard]] Variable operator()(const Variable& x, const RowIds& row_ids);

 private:
  class PReLU : public Module {
   public:
    PReLU();
    [[nodiscard]] Variable operator()(const Variable& x) const;

   private:
    Variable weight_;
  };
  class FeedForward : public Module {
   public:
    FeedForward(Index in, Index hidden, Index out, Generator& gen, const SIGNOptions& options);
    [[nodiscard]] Variable operator()(Variable x, const RowIds& row_ids);

   private:
    ModuleList<Linear> layers_;
    PReLU prelu_;
    Dropout dropout_;
  };

  Index in_feats_;
  Dropout dropout_;
  PReLU prelu_;
  ModuleList<FeedForward> inception_ffs_;
  FeedForward project_;
};

}}  // namespace sar
