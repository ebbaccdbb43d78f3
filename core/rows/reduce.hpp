// SPDX-License-Identifier: MIT

/// Sums over rows, columns and broadcast dimensions, in double precision. Terms are summed in blocks that
/// depend only on the shapes, and the blocks in order: the result does not depend on the number of threads.
#pragma once

#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the sum of all elements; 0 if there are none.
double sum_elements(const Tensor& x);

/// Returns the sum of the squares of all elements; 0 if there are none.
double sum_squares(const Tensor& x);

/// Returns the sum of the products x_i y_i of two tensors of equal shape; 0 if there are none.
double sum_products(const Tensor& x, const Tensor& y);

/// out (+)= x summed over the dimensions along which `out` is broadcast: the backward pass of broadcasting.
/// The shape of out must broadcast to that of x.
void sum_to(const Tensor& x, Tensor& out, bool accumulate = false);

/// The same for x * y (of equal shapes), without storing the product.
void sum_products_to(const Tensor& x, const Tensor& y, Tensor& out, bool accumulate = false);

/// out (+)= the column sums of x, for out of shape [columns].
void sum_columns(const TypedRows& x, Tensor& out, bool accumulate = false);

/// For fused kernels, single-threaded: sums_j += sum_i rows[i * columns + j] over `count` rows. 32 rows are
/// added in `real`, their sums in double precision.
void add_rows_to(const real* rows, Index count, Index columns, double* sums);
void add_rows_to(const Bfloat16* rows, Index count, Index columns, double* sums);

/// For fused kernels: out = the sum over all rows of out.size() quantities. body(begin, end, partial) adds
/// the contribution of rows [begin, end) to `partial`, which is zeroed before. `row_cost` is the number of
/// elements that the body reads per row. Multithreaded.
void sum_row_blocks(Index rows, Index row_cost,
                    FunctionRef<void(Index begin, Index end, double* partial)> body, std::span<double> out);

}}  // namespace sar
