/// Products of tall-skinny matrices (up to millions of rows, up to some thousand columns), on the kernel of
/// core/product.hpp, cut into blocks over oneTBB.
///
/// All operands are tensors of 2 dimensions; `accumulate` adds to `out` instead of overwriting it, `bias` [m]
/// is added to each row. `out` must not share memory with `a` or `b`, unless `a` is deferred: row i of `a` is
/// not computed any more once row i of `out` is written. Shapes that do not fit throw ShapeError naming all
/// three. core/matmul_precision.hpp says how exact they are. Results do not depend on the number of threads.
///
/// Cost: 2 n k m operations; n (k + m) values move once, `b` of matmul (`out` of matmul_tn) stays in cache.
/// From a width of about 40 on, the products are bound by arithmetic: bench/matmul.cpp compares with the
/// BLAS of the machine, docs/performance.md has figures.
#pragma once

#include <sar/core/row_operand.hpp>

namespace sar::inline SAR_PRECISION {

/// out [n, m] = a [n, k] b [k, m]
void matmul(const RowOperand& a, const Tensor& b, Tensor& out, bool accumulate = false);
/// out [n, m] = a [n, k] b [k, m] + bias [m]
void matmul(const RowOperand& a, const Tensor& b, const Tensor& bias, Tensor& out);

/// Where the sums of the columns of a factor go, which a product takes while it reads the factor: [k], [m].
/// 32 rows at a time are added in `real`, and these sums in double precision.
struct ColumnSums {
  Tensor* of_a = nullptr;  ///< null: not wanted
  Tensor* of_b = nullptr;
};

/// out [k, m] = a^T b  for a [n, k], b [n, m]: the sum over the rows n is taken in parts whose number depends
/// on the shapes only, and which need at most 1/16 of the memory of a and b.
void matmul_tn(const RowOperand& a, const RowOperand& b, Tensor& out, bool accumulate = false,
               const ColumnSums& sums = {});

/// out [n, m] = a [n, k] b^T  for b [m, k]
void matmul_nt(const RowOperand& a, const Tensor& b, Tensor& out, bool accumulate = false);
/// out [n, m] = a [n, k] b^T + bias [m]  for b [m, k]
void matmul_nt(const RowOperand& a, const Tensor& b, const Tensor& bias, Tensor& out);

}  // namespace sar
