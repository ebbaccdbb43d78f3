/// Kernels that move rows and columns of a tensor. A row is everything behind the first dimension; columns
/// are those of the last dimension.
///
/// `accumulate` adds to `out` instead of overwriting it. Shapes that do not fit, and row numbers out of
/// range, throw ShapeError, which names the values.
#pragma once

#include <sar/core/tensor.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// out[i] (+)= x[ids[i]]; out must not overlap x.
void gather_rows(const Tensor& x, std::span<const Index> ids, Tensor& out, bool accumulate = false);

/// out[ids[i]] += x[i]. Rows with the same destination are added in the order of i, so that the result does
/// not depend on the number of threads: up to 1,024 of them in `real`, sums of these in double precision. A
/// destination of 65,536 rows or more is divided among the threads.
///
/// Memory traffic: x once and out twice, besides 40 bytes for each i to group them.
void scatter_add_rows(const Tensor& x, std::span<const Index> ids, Tensor& out);

/// Copies `count` columns: to[.., to_begin + j] (+)= from[.., from_begin + j].
void copy_columns(const Tensor& from, Index from_begin, Tensor& to, Index to_begin, Index count,
                  bool accumulate = false);

}  // namespace sar
