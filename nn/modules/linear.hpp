// SPDX-License-Identifier: MIT

/// Linear layer, equivalent to torch.nn.Linear.
#pragma once

#include <sar/autograd/products.hpp>
#include <sar/nn/modules/init.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

///     y = x W^T + b
///
/// for x [n, in_features]. Parameters: weight W [out_features, in_features] and bias b [out_features], both
/// initialized uniformly in +-1/sqrt(in_features).
///
/// @code
/// const Linear linear(64, 4, gen);
/// const Variable y = linear(features);  // [local nodes, 64] -> [local nodes, 4]
/// @endcode
class Linear : public Module {
 public:
  /// Throws InputError unless both widths are positive.
  Linear(Index in_features, Index out_features, Generator& gen, bool bias = true);

  /// Throws ShapeError if x has another width.
  [[nodiscard]] Variable operator()(const Variable& x) const { return linear(x, weight_, bias_); }

  /// The same as rows of `shape`, which recomputed_linear() computes.
  [[nodiscard]] Variable recomputed(const Variable& x, const Shape& shape) const {
    return recomputed_linear(x, weight_, bias_, shape);
  }

  /// Returns base + y for base [n, out_features]; in the memory of `base` if no other handle refers to it.
  /// Throws ShapeError if shapes do not match.
  [[nodiscard]] Variable add_to(Variable base, const Variable& x) const;

  [[nodiscard]] const Variable& weight() const noexcept { return weight_; }
  [[nodiscard]] const Variable& bias() const noexcept { return bias_; }  ///< undefined without a bias

 private:
  Variable weight_, bias_;
};

}}  // namespace sar
