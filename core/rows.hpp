/// Kernels on the rows of a tensor, cut into blocks over the threads. A row is everything behind the first
/// dimension; softmax and columns concern the last dimension.
///
/// Unless said otherwise `accumulate` adds to `out` instead of overwriting it, and `out` may be an operand of
/// its shape. Shapes that do not fit, and row numbers out of range, throw ShapeError naming the values.
#pragma once

#include <sar/core/tensor.hpp>

#include <span>

namespace sar {

/// out[i] (+)= x[ids[i]]; out must not overlap x.
void gather_rows(const Tensor& x, std::span<const Index> ids, Tensor& out, bool accumulate = false);

/// out[ids[i]] += x[i]. Rows that meet in one destination are added in the order of i, so that the result
/// does not depend on the number of threads.
void scatter_add_rows(const Tensor& x, std::span<const Index> ids, Tensor& out);

/// Copies `count` columns: to[.., to_begin + j] (+)= from[.., from_begin + j].
void copy_columns(const Tensor& from, Index from_begin, Tensor& to, Index to_begin, Index count,
                  bool accumulate = false);

/// out = exp(x - m) / sum(exp(x - m)) with m the maximum of the row
void softmax_rows(const Tensor& x, Tensor& out);
/// out (+)= y (grad - sum(y grad)) for y = softmax(x)
void softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

/// out = x - m - log(sum(exp(x - m))) with m the maximum of the row
void log_softmax_rows(const Tensor& x, Tensor& out);
/// out (+)= grad - exp(y) sum(grad) for y = log_softmax(x)
void log_softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate = false);

}  // namespace sar
