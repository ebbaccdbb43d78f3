// SPDX-License-Identifier: MIT

/// LayerNorm over the features of each row, equivalent to torch.nn.LayerNorm.
#pragma once

#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// For x [n, features], n >= 0:
///
///     y_ij = (x_ij - mean_i) / sqrt(var_i + eps) * weight_j + bias_j
///
/// mean_i and var_i (biased) are those of row i. Parameters: weight [features], ones; bias [features], zeros.
/// The backward pass keeps x only.
class LayerNorm : public Module {
 public:
  /// Throws InputError unless features > 0 and eps >= 0.
  explicit LayerNorm(Index features, double eps = 1e-5, bool affine = true);
  /// Throws ShapeError if x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const;

 private:
  Variable weight_, bias_;
  Index features_;
  double eps_;
};

}}  // namespace sar
