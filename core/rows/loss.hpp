// SPDX-License-Identifier: MIT

/// Softmax, and losses of the rows of one rank, as sums of terms (the caller divides by the number of terms
/// on all ranks), and their gradients. Terms are added exactly (ExactSum), in any order; the exponentials of
/// a row are added as in row_sums.hpp.
///
/// Memory traffic: operands are read once and gradients written once.
#pragma once

#include <sar/core/numbers.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

// Softmax over the last dimension, forward and backward. With m the maximum of a row:
//
//     softmax(x) = exp(x - m) / sum(exp(x - m))        log_softmax(x) = x - m - log(sum(exp(x - m)))
//
// Sums are computed as in row_sums.hpp. `out` may be an operand. With `accumulate`, a function adds to
// `out` instead of overwriting it. Functions throw ShapeError if shapes do not match.
//
// Memory traffic: each function reads its operands and writes its result once. Exponentials are computed for
// groups of rows that fit into the cache, so that short rows (a few classes) vectorize as well as long ones.

/// out = softmax(x)
void softmax_rows(const Tensor& x, Tensor& out);

/// out (+)= y (grad - sum(y grad)) for y = softmax(x)
void softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

/// out = log_softmax(x)
void log_softmax_rows(const Tensor& x, Tensor& out);

/// out (+)= grad - exp(y) sum(grad) for y = log_softmax(x)
void log_softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

/// A sum of terms, and their number, or the sum of their weights.
struct SumAndCount {
  ExactSum sum, count;
};

/// Weights of the classes and rows in a cross entropy. The target t of row i stands for the distribution
///
///     q_ic = a_i (kept w_t [c = t] + spread_c)
struct TargetWeights {
  std::span<const real> of_class;  ///< w [C]
  std::span<const real> spread;    ///< [C]: of label smoothing
  double kept = 1;
  std::span<const real> of_row = {};  ///< a [n]; empty: all 1

  [[nodiscard]] double row(Index i) const {
    return of_row.empty() ? 1 : static_cast<double>(of_row[static_cast<std::size_t>(i)]);
  }
};

/// Returns the cross entropy of the rows x_i [n, C] with a target t_i >= 0; rows with a negative target do
/// not count. With weights `count` is the sum of a_i w_t:
///
///     sum_i -log softmax(x_i)[t_i]          sum_ic -q_ic log softmax(x_i)_c
SumAndCount cross_entropy_sum(const Tensor& x, std::span<const std::int32_t> targets,
                              const TargetWeights* weights = nullptr);

/// The gradient of cross_entropy_sum(), 0 in rows with a negative target:
///
///     out_ij (+)= scale (softmax(x_i)_j - [j = t_i])          scale (sum_c q_ic softmax(x_i)_j - q_ij)
void cross_entropy_backward(const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
                            bool accumulate, const TargetWeights* weights = nullptr);

/// A loss of the elements a, their targets b and d = a - b, and its derivative by a:
///
///     bce       -b log sigmoid(a) - (1 - b) log(1 - sigmoid(a))       sigmoid(a) - b
///     squared   d^2                                                   2 d
///     absolute  |d|                                                   sign(d), 0 at 0
///     huber     |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)      min(max(d, -delta), delta)
///
/// Binary cross entropy is computed in a form that neither overflows nor cancels.
struct ElementLoss {
  enum Kind { bce, squared, absolute, huber } kind;
  double delta = 1;

  [[nodiscard]] real limit() const { return static_cast<real>(delta); }
};

/// Returns the sum over all elements, each multiplied by its weight if there are `weights`; `count` is the
/// number of elements.
SumAndCount element_loss_sum(const ElementLoss& loss, const Tensor& a, const Tensor& b,
                             std::span<const real> weights = {});

/// out (+)= scale times the derivative
void element_loss_backward(const ElementLoss& loss, const Tensor& a, const Tensor& b, real scale, Tensor& out,
                           bool accumulate);

/// Returns, for the rows whose target is not negative, in how many the argmax (the first of equal elements)
/// is the target. `count` is the number of such rows. A row with a NaN is not correct.
SumAndCount count_correct(const Tensor& x, std::span<const std::int32_t> targets);
}}  // namespace sar
