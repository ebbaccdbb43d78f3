// SPDX-License-Identifier: MIT

/// Rows of edges between atoms for MACE: radial functions and spherical harmonics of their vectors.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/nn/atoms/couplings.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// What the radial functions of HarmonicFunctions read in place of the distance r. With the sum s of the
/// covalent radii of both atoms:
enum class DistanceTransform {
  none,    ///< r
  agnesi,  ///< 1 / (1 + a z^q / (1 + z^(q - p))), z = 2 r / s, a = 1.0805, q = 0.9183, p = 4.5791
  soft     ///< t + (r - t) (1 + tanh(4 (r - m) / w)) / 2, t = 3 s / 4, m = 25 s / 24, w = 7 s / 12
};

/// The functions of vectors d of length r within a cutoff c. The row of a vector has the K + (l + 1)^2
/// columns
///
///     fc(r) sqrt(2 / c) sin(k pi T / c) / T, k = 1 .. K        Y_lm(-d / r), l = 0 .. max_l, m = -l .. l
///
///     fc(r) = 1 - (p + 1) (p + 2) / 2 x^p + p (p + 2) x^(p + 1) - p (p + 1) / 2 x^(p + 2),  x = r / c < 1
///
/// with the transformed distance T and real spherical harmonics Y of which the squares of a degree have the
/// sum 2 l + 1, in the order of e3nn: Y_1 = sqrt(3) (x, y, z). The signs are those of a vector from the
/// source to the destination. From r = c on fc is 0. For r = 0, the radial functions and the derivatives are
/// 0, and Y is 1 for l = 0, 0 otherwise.
struct HarmonicFunctions {
  double cutoff = 5;
  Index num_basis = 8;  ///< K
  int max_l = 3;        ///< at most 3
  int power = 5;        ///< p
  DistanceTransform transform = DistanceTransform::none;

  [[nodiscard]] Index columns() const noexcept { return num_basis + components(max_l); }
};

/// Returns the rows of d [n, 3], [n, columns()]. `radii`: s [n, 1], a constant; undefined without a
/// transform. Computed in double precision. Has a tangent in d. Keeps d and s.
Variable harmonic_rows(const Variable& d, const Tensor& radii, const HarmonicFunctions& functions);

/// Returns the radial functions at a distance r > 0, in double precision; `radii`: s, with a transform.
std::vector<double> radial_functions_at(double r, const HarmonicFunctions& functions, double radii = 0);

/// For kernels: the rows of d, and g J [n, 3] for g [n, columns()] and the derivative J of the rows in d.
Tensor harmonic_row_values(const Tensor& d, const Tensor& radii, const HarmonicFunctions& functions);
Tensor harmonic_row_gradients(const Tensor& d, const Tensor& radii, const Tensor& g,
                              const HarmonicFunctions& functions);

}}  // namespace sar
