/// Products of tall-skinny matrices, on Eigen, cut into row blocks over oneTBB.
///
/// All operands are tensors of 2 dimensions; `accumulate` adds to `out` instead of overwriting it. Shapes that do not
/// fit throw ShapeError naming all three. Results do not depend on the number of threads.
#pragma once

#include <sar/core/tensor.hpp>

namespace sar {

/// out [n, m] = a [n, k] b [k, m]
void matmul(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate = false);

/// out [k, m] = a^T b  for a [n, k], b [n, m]: the sum over the rows n is taken in blocks whose number depends on
/// the shapes only.
void matmul_tn(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate = false);

/// out [n, m] = a [n, k] b^T  for b [m, k]
void matmul_nt(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate = false);

}  // namespace sar
