/// Sums over rows, columns and broadcast dimensions, in double precision. They are taken over blocks that
/// depend only on the shapes and combined in block order: the result is the same for every number of threads.
#pragma once

#include <sar/core/parallel.hpp>
#include <sar/core/tensor.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Sum of all elements; 0 for none.
double sum_elements(const Tensor& x);

/// Sum of the squares of all elements; 0 for none.
double sum_squares(const Tensor& x);

/// Sum of the products x_i y_i of tensors of equal shapes; 0 for none.
double sum_products(const Tensor& x, const Tensor& y);

/// out (+)= x summed over the dimensions that `out` repeats: the backward pass of broadcast(). The shape of
/// out must broadcast to that of x.
void sum_to(const Tensor& x, Tensor& out, bool accumulate = false);

/// The same for x * y (of equal shapes), without the product in memory.
void sum_products_to(const Tensor& x, const Tensor& y, Tensor& out, bool accumulate = false);

/// For fused kernels, on this thread: sums_j += sum_i rows[i * columns + j] of `count` rows, 32 terms in
/// `real` and sums of these in double precision.
void add_rows_to(const real* rows, Index count, Index columns, double* sums);

/// For fused kernels: the sum of `out.size()` quantities over all rows. body(begin, end, partial) adds the
/// contribution of rows [begin, end) to `partial`, which starts at 0. `row_cost` is the number of elements it
/// touches per row.
void sum_row_blocks(Index rows, Index row_cost,
                    FunctionRef<void(Index begin, Index end, double* partial)> body, std::span<double> out);

}  // namespace sar
