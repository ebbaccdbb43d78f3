// SPDX-License-Identifier: MIT

/// Multi-layer perceptron.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/nn/modules/layer_norm.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/row_function.hpp>

#include <deque>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

struct MLPOptions {
  int hidden_layers = 1;         ///< number of layers of the hidden width; at least 1
  Activation activation = relu;  ///< after every hidden layer
  bool layer_norm = false;       ///< apply LayerNorm to the result
};

/// For x [n, in], k hidden layers and an activation s:
///
///     h_0 = x
///
///     h_i = s(W_i h_{i-1} + b_i), i = 1 .. k
///
///     y = W_{k+1} h_k + b_{k+1}    (y = LayerNorm(y))
///
/// Parameters are named by position, as in a torch.nn.Sequential with an activation between two layers: "0",
/// "2", ... "2 k" as in Linear, and "2 k + 1" as in LayerNorm.
///
/// @code
/// const MLP mlp(64, 32, 4, gen, {.hidden_layers = 2, .layer_norm = true});
/// const Variable y = mlp(features);
/// @endcode
class MLP : public Module {
 public:
  /// Throws InputError unless the widths are positive and there are a hidden layer and an activation.
  MLP(Index in_feats, Index hidden_feats, Index out_feats, Generator& gen, const MLPOptions& options = {});

  /// x [n, in] -> [n, out]. Throws ShapeError if x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const { return rest(first()(x)); }

  /// Returns the first layer, for callers that compute its product from parts of x: each part is multiplied
  /// by the matching columns of the weight. (*this)(x) equals rest(first()(x)).
  [[nodiscard]] const Linear& first() const noexcept { return linears_.front(); }
  /// Applies everything after the first layer: [n, hidden] -> [n, out].
  [[nodiscard]] Variable rest(Variable first_result) const;

 private:
  std::deque<Linear> linears_;
  Activation activation_;
  std::optional<LayerNorm> norm_;
};

}}  // namespace sar
