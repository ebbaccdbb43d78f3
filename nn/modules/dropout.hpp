// SPDX-License-Identifier: MIT

/// Dropout, also with ReLU in one pass, with masks that are independent of the number of ranks and are
/// regenerated instead of stored.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/random.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// In training, sets each element to 0 with probability p and divides it by 1 - p otherwise. In evaluation,
/// returns its input (Srivastava et al. 2014). The random draws depend on the seed, the module's stream, the
/// number of previous training calls and the row's original id, so that they are the same for every number of
/// ranks.
class Dropout : public Module {
 public:
  /// Throws InputError unless 0 <= p < 1.
  Dropout(double p, Generator& gen);

  /// x [n, ...] and the original ids of its n rows, for example graph.src_ids() (RowIds documents their
  /// lifetime). Throws ShapeError if there are not n ids.
  [[nodiscard]] Variable operator()(Variable x, RowIds row_ids);

  [[nodiscard]] double p() const noexcept { return p_; }
  /// Returns whether a call would change its input: in training with p > 0.
  [[nodiscard]] bool is_active() const noexcept { return is_training() && p_ > 0; }
  /// Returns the random key of the next call and counts that call. For fused operations that drop elements
  /// themselves.
  RandomKey next_call();

 private:
  double p_;
  RandomKey key_;
  Recoverable<std::uint64_t> calls_;  // registered as the counter "calls"
};

/// Local. Returns dropout(relu(x), row_ids), computed as one operation. The backward pass keeps only the
/// result y:
///
///     dx = dy / (1 - p) where y > 0, and 0 elsewhere
///
/// Values, gradients and random draws are those of the two separate operations; `row_ids` as in Dropout.
/// Throws ShapeError if the numbers of rows and ids differ.
[[nodiscard]] Variable relu_dropout(Variable x, Dropout& dropout, const RowIds& row_ids);
}}  // namespace sar
