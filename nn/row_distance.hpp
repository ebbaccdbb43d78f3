/// What predictors of edges with a relation compute: distances of rows, and complex numbers of length 1.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar::inline SAR_PRECISION {

/// How a query is compared with the rows of nodes, over the columns j.
enum class RowComparison {
  dot,      ///< sum q_j h_j
  l1,       ///< sum |q_j - h_j|
  l2,       ///< sqrt(sum (q_j - h_j)^2)
  modulus,  ///< sum |q_j - h_j| of complex numbers: columns are the real parts, then the imaginary parts
};

/// y[i] = the distance of a[i] and b[i], for a and b [n, D], of the kind l1, l2 or modulus: [n, 1]. Added in
/// double precision. The slope of a distance of 0 is 0. Keeps a and b.
Variable row_distance(const Variable& a, const Variable& b, RowComparison kind);

/// [n, d] angles in radians -> [n, 2 d]: their cosines, then their sines. Keeps the result.
Variable unit_complex(const Variable& angle);

}  // namespace sar::inline SAR_PRECISION
