// SPDX-License-Identifier: MIT

/// Kernels that move and sum rows and columns of a tensor. A row is everything behind the first dimension;
/// columns run along the last dimension.
///
/// With `accumulate`, a function adds to `out` instead of overwriting it. Functions throw ShapeError, with
/// the values, if shapes do not match or a row number is out of range.
///
/// Room core/rows: Kernels on the rows and elements of tensors, forward and backward: elementwise functions,
/// reductions, norms, softmax, losses.
#pragma once

#include <sar/core/tensor/tensor.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

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

// Sums over rows, columns and broadcast dimensions, in double precision. Terms are summed in blocks that
// depend only on the shapes, and the blocks in order: the result does not depend on the number of threads.

/// Returns the sum of the squares of all elements; 0 if there are none.
double sum_squares(const Tensor& x);

/// out (+)= x summed over the dimensions along which `out` is broadcast: the backward pass of broadcasting.
/// The shape of out must broadcast to that of x.
void sum_to(const Tensor& x, Tensor& out, bool accumulate = false);

/// The same for x * y (of equal shapes), without storing the product.
void sum_products_to(const Tensor& x, const Tensor& y, Tensor& out, bool accumulate = false);

/// out (+)= the column sums of x, for out of shape [columns].
void sum_columns(const TypedRows& x, Tensor& out, bool accumulate = false);

/// For fused kernels, single-threaded: sums_j += sum_i rows[i * columns + j] over `count` rows. 32 rows are
/// added in `real`, their sums in double precision.
void add_rows_to(ConstTypedNumbers rows, Index count, Index columns, double* sums);

/// For fused kernels: out = the sum over all rows of out.size() quantities. body(begin, end, partial) adds
/// the contribution of rows [begin, end) to `partial`, which is zeroed before. `row_cost` is the number of
/// elements that the body reads per row. Multithreaded.
void sum_row_blocks(Index rows, Index row_cost,
                    FunctionRef<void(Index begin, Index end, double* partial)> body, std::span<double> out);

// Kernels for rows with H heads: x [N, H, D].

/// out[i, h] = sum_d a[0, h, d] x[i, h, d] for a [1, H, D] and out [N, H]. Reads x once. All functions of
/// heads throw ShapeError if shapes do not match.
void head_dots(const TypedRows& x, const Tensor& a, Tensor& out);

/// The gradient of x: out[i, h, d] (+)= grad[i, h] a[0, h, d]. Writes out once (and reads it, to accumulate).
void head_dots_backward_x(const Tensor& grad, const Tensor& a, Tensor& out, bool accumulate = false);

/// The gradient of a: out[h D + d] = sum_i grad[i, h] x[i, h, d], summed in double precision in a fixed
/// order. Reads x once.
void head_dots_backward_a(const Tensor& grad, const TypedRows& x, std::span<double> out);
}}  // namespace sar
