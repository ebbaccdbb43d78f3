// SPDX-License-Identifier: MIT

/// Sparse rows for tests.
#pragma once

#include "support/random_tensor.hpp"

#include <sar/autograd/sparse_variable.hpp>

#include <cstdint>
#include <vector>

namespace sar::test {

/// The values of a matrix that are not 0, as a sparse variable.
inline Variable sparse_of(const Tensor& dense) {
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<real> values;
  for (Index i = 0; i < dense.num_rows(); ++i) {
    for (Index j = 0; j < dense.row_size(); ++j)
      if (dense.row(i)[j] != 0) {
        columns.push_back(static_cast<std::int32_t>(j));
        values.push_back(dense.row(i)[j]);
      }
    offsets.push_back(std::ssize(columns));
  }
  return sparse_variable(dense.row_size(), offsets, columns, values);
}

/// A random matrix of which about one value in `one_in` is not 0. Every seventh row is empty.
inline Tensor random_sparse(const Shape& shape, Index one_in, std::uint64_t seed) {
  Tensor x = random_tensor(shape, seed);
  const Tensor chosen = random_tensor(shape, seed + 1000);
  for (Index i = 0; i < x.num_rows(); ++i)
    for (Index j = 0; j < x.row_size(); ++j) {
      const auto draw = static_cast<Index>(static_cast<double>(chosen.row(i)[j]) * 1e5);
      if (i % 7 == 3 || draw % one_in != 0) x.row(i)[j] = 0;
    }
  return x;
}

}  // namespace sar::test
