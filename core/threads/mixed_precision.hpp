// SPDX-License-Identifier: MIT

/// Mixed precision: activations and their gradients in bfloat16, as in torch.autocast(dtype=bfloat16).
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// During its lifetime, layers on the thread that made it store their results in bfloat16, and products have
/// MatmulPrecision::medium. Parameters, their gradients, optimizers, statistics of norms, scores of
/// attention, losses and all sums stay in `real`: each stored number is rounded once, to nearest, ties to
/// even. Keep it alive over the forward and the backward pass, on every rank. Scopes nest. A library in
/// double precision throws InputError.
///
/// @code
/// const Linear net(64, 4, gen);
/// const MixedPrecisionScope mixed(sizeof(real) == 4);
/// Tape tape;
/// tape.backward(sum(net(features)));  // the rows of net(features), and their gradient, are in bfloat16
/// @endcode
class MixedPrecisionScope : NonCopyable {
 public:
  /// `mixed`: false restores the precision of `real` within an outer scope.
  explicit MixedPrecisionScope(bool mixed = true);
  ~MixedPrecisionScope();

 private:
  bool outer_;
};

/// Returns whether a MixedPrecisionScope is open on this thread.
[[nodiscard]] bool mixed_precision() noexcept;

}}  // namespace sar
