// SPDX-License-Identifier: MIT

/// Softmax over the last dimension, forward and backward. With m the maximum of a row:
///
///     softmax(x) = exp(x - m) / sum(exp(x - m))        log_softmax(x) = x - m - log(sum(exp(x - m)))
///
/// Sums are computed as in row_sums.hpp. `out` may be an operand. With `accumulate`, a function adds to
/// `out` instead of overwriting it. Functions throw ShapeError if shapes do not match.
///
/// Memory traffic: each function reads its operands and writes its result once. Exponentials are computed for
/// groups of rows that fit into the cache, so that short rows (a few classes) vectorize as well as long ones.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// out = softmax(x)
void softmax_rows(const Tensor& x, Tensor& out);

/// out (+)= y (grad - sum(y grad)) for y = softmax(x)
void softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

/// out = log_softmax(x)
void log_softmax_rows(const Tensor& x, Tensor& out);

/// out (+)= grad - exp(y) sum(grad) for y = log_softmax(x)
void log_softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

}}  // namespace sar
