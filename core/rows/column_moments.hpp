// SPDX-License-Identifier: MIT

/// Count, mean and centred second moment of each column of a tensor, in double precision. Moments of two sets
/// of rows merge without cancellation (Chan, Golub, LeVeque 1979). Results do not depend on the number of
/// threads.
#pragma once

#include <sar/core/tensor/typed_rows.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The moments of `count` rows x_i:
///
///     mean_j = sum_i x_ij / count        m2_j = sum_i (x_ij - mean_j)^2
struct ColumnMoments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> m2;

  /// Replaces these moments by those of both sets of rows together.
  void merge(const ColumnMoments& other);
};

/// Returns the moments of all rows of x [n, F]; count 0 and zeros if n is 0. Reads x once from memory: each
/// chunk of rows is read twice, the second time from cache.
ColumnMoments column_moments(const TypedRows& x);
}}  // namespace sar
