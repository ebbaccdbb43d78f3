/// Softmax over the last dimension, forward and backward. With m the maximum of a row:
///
///     softmax(x) = exp(x - m) / sum(exp(x - m))        log_softmax(x) = x - m - log(sum(exp(x - m)))
///
/// Sums are those of row_lanes.hpp. `out` may be an operand. `accumulate` adds to `out` instead of
/// overwriting it. Shapes that do not fit throw ShapeError.
///
/// Memory traffic: each function reads its operands and writes its result once. Exponentials are taken over
/// groups of rows that fit into the cache, so that short rows (a few classes) vectorise as well as long ones.
/// Time, to that of a copy of the tensors that are read (bench_rows, AVX-512): softmax and log_softmax 1.3
/// to 1.6 from 128 columns on; 2.0 to 2.4 at 32 and 40 columns, where the copy stays in the caches and the
/// limit is arithmetic (about 20 operations a vector for the exponentials, as many for the reductions of a
/// row); the backward passes 0.8 and 0.9.
#pragma once

#include <sar/core/tensor.hpp>

namespace sar::inline SAR_PRECISION {

void softmax_rows(const Tensor& x, Tensor& out);

/// out (+)= y (grad - sum(y grad)) for y = softmax(x)
void softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

void log_softmax_rows(const Tensor& x, Tensor& out);

/// out (+)= grad - exp(y) sum(grad) for y = log_softmax(x)
void log_softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

}  // namespace sar
