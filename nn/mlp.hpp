/// Multi-layer perceptron.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/nn/layer_norm.hpp>
#include <sar/nn/linear.hpp>
#include <sar/nn/row_function.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct MLPOptions {
  int hidden_layers = 1;         ///< of the hidden width; at least 1
  Activation activation = relu;  ///< after every hidden layer
  bool layer_norm = false;       ///< of the result
};

/// For x [n, in], with k hidden layers and an activation s:
///
///     h_0 = x    h_i = s(W_i h_{i-1} + b_i), i = 1 .. k    y = W_{k+1} h_k + b_{k+1}    (y = LayerNorm(y))
///
/// Parameters, named by position as those of torch.nn.Sequential with an activation between two layers: "0",
/// "2", ... "2 k" as in Linear, and "2 k + 1" as in LayerNorm.
class MLP : public Module {
 public:
  /// Throws InputError unless widths are positive, there is a hidden layer and an activation.
  MLP(Index in_feats, Index hidden_feats, Index out_feats, Generator& gen, const MLPOptions& options = {});

  /// x [n, in] -> [n, out]. Throws ShapeError when x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const { return rest(first()(x)); }

  /// The first layer, for those who have its product in parts: the columns of its weight that belong to a
  /// part of x are those of the part. (*this)(x) is rest(first()(x)).
  [[nodiscard]] const Linear& first() const noexcept { return *linears_.front(); }
  /// What follows the first layer: [n, hidden] -> [n, out].
  [[nodiscard]] Variable rest(Variable first_result) const;

 private:
  std::vector<std::unique_ptr<Linear>> linears_;
  Activation activation_;
  std::optional<LayerNorm> norm_;
};

}  // namespace sar
