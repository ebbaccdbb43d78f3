// SPDX-License-Identifier: MIT

/// The transpose of a matrix.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar::test {

inline Tensor transposed(const Tensor& a) {
  Tensor t({a.shape()[1], a.shape()[0]});
  for (Index i = 0; i < a.shape()[0]; ++i)
    for (Index j = 0; j < a.shape()[1]; ++j) t.row(j)[i] = a.row(i)[j];
  return t;
}

}  // namespace sar::test
