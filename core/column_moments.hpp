/// Column statistics of the rows of a tensor in double precision: count, mean and centred second moment. They
/// merge pairwise without cancellation (Chan, Golub, LeVeque 1979). Results do not depend on the number of
/// threads.
#pragma once

#include <sar/core/tensor.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {

/// Of `count` rows x_i:
///
///     mean_j = sum_i x_ij / count        m2_j = sum_i (x_ij - mean_j)^2
struct ColumnMoments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> m2;

  /// Becomes the moments of both sets of rows together.
  void merge(const ColumnMoments& other);
};

/// The moments of all rows of x [n, F]; of no rows: count 0 and zeros. Reads x once from memory: rows are
/// read twice in chunks that stay in the cache.
ColumnMoments column_moments(const Tensor& x);

}  // namespace sar
