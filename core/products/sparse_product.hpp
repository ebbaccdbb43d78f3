// SPDX-License-Identifier: MIT

/// Products with sparse rows, multithreaded, on stored values only.
///
/// Tensors are 2-dimensional. With `accumulate`, a function adds to `out` instead of overwriting it.
/// Functions throw ShapeError, with all three shapes, if shapes do not match. Results do not depend on the
/// number of threads. MatmulPrecision does not change them.
///
/// Cost: 2 s m operations for s stored values and m columns; each stored value reads a row of b, or changes a
/// row of the sum, mostly in the cache.
#pragma once

#include <sar/core/products/matmul.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// out [n, m] = x [n, k] b [k, m] + addend
void sparse_matmul(const SparseMatrix& x, const Tensor& b, Tensor& out, const Addend& addend = {});

/// out [k, m] = x^T g  for x [n, k], g [n, m]. The sum over the n rows is computed in at most 64 parts, whose
/// number depends only on the shapes; all but the first need memory, at most half of that of g.
void sparse_matmul_tn(const SparseMatrix& x, const Tensor& g, Tensor& out, bool accumulate = false);

/// out [m, k] (+)= a^T  for a [k, m]
void transpose(const Tensor& a, Tensor& out, bool accumulate = false);

}}  // namespace sar
