// SPDX-License-Identifier: MIT

/// Products of tall-skinny matrices (up to millions of rows, up to some thousand columns), multithreaded, on
/// the kernel of core/products/product.hpp.
///
/// All operands are 2-dimensional; rows, and the result of matmul and matmul_nt, are tensors or, in mixed
/// precision, rows in bfloat16. With `accumulate`, a function adds to `out` instead of overwriting
/// it; `bias` [m] is added to each row. `out` must not share memory with `a` or `b`, with two exceptions: `a`
/// is deferred (row i of `a` is not computed again after row i of `out` was written), or `out` is `a`, in
/// bfloat16. Functions throw ShapeError, with all
/// three shapes, if shapes do not match. See core/threads/mixed_precision.hpp for the precision. Results do
/// not depend on the number of threads.
///
/// Cost: 2 n k m operations; n (k + m) values are moved once, while `b` of matmul (`out` of matmul_tn) stays
/// in the cache. From a width of about 40 on, products are bound by arithmetic.
///
/// Room core/products: Products of matrices, in the precision and on the kernel that fit the processor.
#pragma once

#include <sar/core/products/row_operand.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// out [n, m] = a [n, k] b [k, m]
void matmul(const RowOperand& a, const Tensor& b, TypedRows out, bool accumulate = false);
/// out [n, m] = a [n, k] b [k, m] + bias [m]
void matmul(const RowOperand& a, const Tensor& b, const Tensor& bias, TypedRows out);

/// Optional outputs of matmul_tn: the column sums of its factors, [k] and [m], computed while it reads them.
/// 32 rows are added in `real`, their sums in double precision.
struct ColumnSums {
  Tensor* of_a = nullptr;  ///< null: not computed
  Tensor* of_b = nullptr;
};

/// out [k, m] = a^T b  for a [n, k], b [n, m]. The sum over the n rows is computed in parts whose number
/// depends only on the shapes; they need at most 1/16 of the memory of a and b.
void matmul_tn(const RowOperand& a, const RowOperand& b, Tensor& out, bool accumulate = false,
               const ColumnSums& sums = {});

/// out [n, m] = a [n, k] b^T  for b [m, k]
void matmul_nt(const RowOperand& a, const Tensor& b, TypedRows out, bool accumulate = false);
/// out [n, m] = a [n, k] b^T + bias [m]  for b [m, k]
void matmul_nt(const RowOperand& a, const Tensor& b, const Tensor& bias, TypedRows out);
}}  // namespace sar
