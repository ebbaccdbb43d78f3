// SPDX-License-Identifier: MIT

/// Distances between rows, and complex numbers of modulus 1, for predictors of typed edges.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// How a query q is compared with the row h of a node, over the columns j.
enum class RowComparison {
  dot,      ///< sum q_j h_j
  l1,       ///< sum |q_j - h_j|
  l2,       ///< sqrt(sum (q_j - h_j)^2)
  modulus,  ///< sum |q_j - h_j| of complex numbers: the columns hold all real parts, then all imaginary parts
};

/// Returns y[i] = the distance between a[i] and b[i], for a and b [n, D] and a kind l1, l2 or modulus: [n,
/// 1]. Accumulates in double precision. The gradient at a distance of 0 is 0. Keeps a and b.
Variable row_distance(const Variable& a, const Variable& b, RowComparison kind);

/// Returns x + s - y for rows of equal shapes, computed in double precision and rounded once; s may be
/// undefined, for 0. Keeps nothing.
Variable edge_vectors(const Variable& x, const Variable& y, const Variable& s = {});

/// Returns the cosines and then the sines of angles in radians: [n, d] -> [n, 2 d]. Keeps the result.
Variable unit_complex(const Variable& angle);

}}  // namespace sar
