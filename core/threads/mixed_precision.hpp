// SPDX-License-Identifier: MIT

/// The precision of matrix products, and mixed precision: activations and their gradients in bfloat16, as in
/// torch.autocast(dtype=bfloat16).
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

/// The precision of matrix products in single precision: matmul, linear layers, gather_mm, and their backward
/// passes. Like torch.set_float32_matmul_precision.
///
///     highest   factors with all 24 bits; the default
///     high      each factor is a sum of two bfloat16 numbers, x = h + l, and a product is
///               h_a h_b + l_a h_b + h_a l_b: relative error of a product at most 3 / 2^16
///     medium    each factor is rounded to bfloat16: relative error of a product at most 1 / 2^7
///
/// Sums are always in single precision. `high` and `medium` are for processors that multiply bfloat16 numbers
/// in hardware: with AMX tiles or, for `medium`, AVX512-BF16 where it is faster than single precision.
/// Elsewhere they give the same values up to the rounding of the sums, and are slower than `highest`. The
/// bounds hold for factors between 1e-35 and 3.3e38 in magnitude: the instructions treat numbers below 2^-126
/// as zero, and larger numbers round to infinity. An infinite factor gives NaN with `high`. A library in
/// double precision accepts all three and always computes in double precision.
enum class MatmulPrecision { highest, high, medium };

/// During its lifetime, products have this precision on the thread that made it, and in its parallel loops:
/// in the forward and the backward pass of a training that keeps it alive over both. Scopes nest. Set the
/// same precision on every rank.
class MatmulPrecisionScope : NonCopyable {
 public:
  explicit MatmulPrecisionScope(MatmulPrecision precision) noexcept;
  ~MatmulPrecisionScope();

 private:
  MatmulPrecision outer_;
};

/// Returns the precision of the innermost scope; without one, highest.
[[nodiscard]] MatmulPrecision matmul_precision() noexcept;

/// Returns the name, for example "high".
[[nodiscard]] const char* to_string(MatmulPrecision precision) noexcept;
}}  // namespace sar
