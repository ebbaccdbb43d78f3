// SPDX-License-Identifier: MIT

/// Kernels that move rows and columns of a tensor. A row is everything behind the first dimension; columns
/// run along the last dimension.
///
/// With `accumulate`, a function adds to `out` instead of overwriting it. Functions throw ShapeError, with
/// the values, if shapes do not match or a row number is out of range.
///
/// Room core/rows: Kernels on the rows and elements of tensors, forward and backward: elementwise functions,
/// reductions, norms, softmax, losses.
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// out[i] (+)= x[ids[i]]. out must not overlap x.
void gather_rows(const Tensor& x, std::span<const Index> ids, Tensor& out, bool accumulate = false);

/// out[ids[i]] += x[i]. Rows with the same destination are added in the order of i, so that the result does
/// not depend on the number of threads: up to 1,024 of them in `real`, then these sums in double precision. A
/// destination with 65,536 rows or more is divided among the threads.
///
/// Memory traffic: reads x once, reads and writes out once, plus 40 bytes per row of x to group them.
void scatter_add_rows(const Tensor& x, std::span<const Index> ids, Tensor& out);

/// Copies `count` columns: to[.., to_begin + j] (+)= from[.., from_begin + j].
void copy_columns(const Tensor& from, Index from_begin, Tensor& to, Index to_begin, Index count,
                  bool accumulate = false);

}}  // namespace sar
