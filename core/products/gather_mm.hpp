// SPDX-License-Identifier: MIT

/// Products of each row with the matrix of its type, in matmul_precision(). Multithreaded.
///
/// Rows of a type are gathered in blocks of 256 rows: except for the groups, no memory of the size of the
/// operands is allocated. With `accumulate`, a function adds to `out` instead of overwriting it; `out` must
/// not share memory with operands. Functions throw ShapeError if shapes do not match. Results do not depend
/// on the number of threads.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

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
