// SPDX-License-Identifier: MIT

/// Products of tall-skinny matrices (up to millions of rows, up to some thousand columns), also with a matrix
/// for each type of row, multithreaded, on the kernel of core/products/product.hpp.
///
/// All operands are 2-dimensional; rows, and the result of matmul and matmul_nt, are tensors or, in mixed
/// precision, rows in bfloat16. With `accumulate`, a function adds to `out` instead of overwriting it. `out`
/// must not share memory with `a` or `b`, with two exceptions: `a` is deferred (row i of `a` is not computed
/// again after row i of `out` was written), or `out` is `a`, in bfloat16. Functions throw ShapeError, with
/// all three shapes, if shapes do not match. See core/threads/mixed_precision.hpp for the precision. Results
/// do not depend on the number of threads.
///
/// Cost: 2 n k m operations; n (k + m) values are moved once, while `b` of matmul (`out` of matmul_tn) stays
/// in the cache. From a width of about 40 on, products are bound by arithmetic.
///
/// Room core/products: Products of matrices, in the precision and on the kernel that fit the processor.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/products/row_operand.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

// The last step of a product whose sum over rows is computed in parts. For implementation files of core/.

/// out += partial_0 + partial_1 + ... for partial [parts, ...], element by element in this order, in double
/// precision and rounded once. Reads each part once.
inline void add_parts(const Tensor& partial, Tensor& out) {
  constexpr Index grain = 1 << 12;
  parallel_for(out.size(), grain, [&](Index begin, Index end) {
    Array<double> total(end - begin, 0);
    for (Index part = 0; part <= partial.num_rows(); ++part) {
      const real* addend = (part == 0 ? out.data() : partial.row(part - 1)) + begin;
      for (Index i = 0; i < end - begin; ++i) total[i] += static_cast<double>(addend[i]);
    }
    for (Index i = begin; i < end; ++i) out.data()[i] = static_cast<real>(total[i - begin]);
  });
}

/// What is added to a product: a bias for each row, or the result itself.
struct Addend {
  Tensor bias = {};  ///< [m]; undefined: none
  bool accumulate = false;
};

/// out [n, m] = a [n, k] b [k, m] + addend
void matmul(const RowOperand& a, const Tensor& b, TypedRows out, const Addend& addend = {});

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

/// out [n, m] = a [n, k] b^T + addend  for b [m, k]
void matmul_nt(const RowOperand& a, const Tensor& b, TypedRows out, const Addend& addend = {});

// Products of each row with the matrix of its type, in matmul_precision(). Multithreaded.
//
// Rows of a type are gathered in blocks of 256 rows: except for the groups, no memory of the size of the
// operands is allocated. With `accumulate`, a function adds to `out` instead of overwriting it; `out` must
// not share memory with operands. Functions throw ShapeError if shapes do not match. Results do not depend
// on the number of threads.

/// Row numbers grouped by type.
struct TypeGroups {
  /// Throws ShapeError if a type is not in [0, num_types).
  TypeGroups(std::span<const Index> types, Index num_types);

  /// The rows of type t are rows[begin[t]] to rows[begin[t + 1] - 1], in ascending order.
  Array<Index> begin;
  Array<Index> rows;  ///< empty when the rows are sorted by type: the numbers begin[t] .. begin[t+1] - 1
                      ///< themselves
};

// `w` contains matrices [types, in, out] or block-diagonal matrices [types, blocks, in / blocks, out /
// blocks].

/// out[i] (+)= x[i] w[t_i]  for x [n, in], out [n, out]
void gather_mm(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out,
               bool accumulate = false);

/// out[i] (+)= x[i] w[t_i]^T  for x [n, out], out [n, in]
void gather_mm_nt(const Tensor& x, const Tensor& w, const TypeGroups& groups, Tensor& out,
                  bool accumulate = false);

/// out[t] (+)= sum of a[i]^T b[i] over the rows i of type t,  for a [n, in], b [n, out], out shaped as w
void gather_mm_tn(const Tensor& a, const Tensor& b, const TypeGroups& groups, Tensor& out,
                  bool accumulate = false);
}}  // namespace sar
