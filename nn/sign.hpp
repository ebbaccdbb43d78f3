/// SIGN: hops of the features are computed once, and a network of rows is trained on them.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/nn/dropout.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/module_list.hpp>
#include <sar/nn/propagation.hpp>

namespace sar::inline SAR_PRECISION {

/// [x, S x, ..., S^hops x] side by side, for x [local nodes, F]: [local nodes, (hops + 1) F], a constant.
/// Collective: `hops` propagate(). Throws, the same on every rank, InputError unless hops >= 0, ShapeError as
/// propagate().
[[nodiscard]] Tensor sign_features(const GraphShardManager& graph, const Tensor& x, int hops,
                                   HopNorm norm = HopNorm::symmetric);

struct SIGNOptions {
  int hops = 3;
  int layers = 2;  ///< of each network
  double dropout = 0.5;
};

/// Frasca et al., arXiv 2004.11198; as the model of DGL's example:
///
///     y = project(dropout(prelu([ff_0(x), ff_1(S x), ..., ff_k(S^k x)])))
///
/// Each ff_i and project is a network of `layers` Linear, between which are a PReLU (one slope, 0.25 at the
/// start) and dropout. Parameters: inception_ffs.I.layers.J.weight, .bias, inception_ffs.I.prelu.weight
/// [1], the same of project, and prelu.weight. Weights start Xavier-uniform with ReLU's gain, biases at zero.
/// Local: a row depends on the same row only, and no rows travel while it is trained.
class SIGN : public Module {
 public:
  /// Throws InputError unless widths and `layers` are positive, hops >= 0 and 0 <= dropout < 1.
  SIGN(Index in_feats, Index hidden, Index out_feats, Generator& gen, const SIGNOptions& options = {});

  /// x [n, (hops + 1) in_feats] from sign_features(), and the original ids of its rows, which key dropout ->
  /// [n, out_feats]. Throws ShapeError for another width.
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

}  // namespace sar
