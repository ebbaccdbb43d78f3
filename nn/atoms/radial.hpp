// SPDX-License-Identifier: MIT

/// Kernels for the rows that describe vectors in three dimensions to a radial network.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The functions b_k of RadialFunctions, k = 1 .. K:
enum class RadialBasis {
  sinc,      ///< sin(k pi r / c) / r
  gaussian,  ///< exp(-(r - (k - 1) w)^2 / (2 w^2)), w = c / (K - 1); w = c for K = 1
  bessel     ///< sqrt(2 / c) sin(k pi r / c) / r: orthonormal in the sphere with the radius c
};

/// The function fc of RadialFunctions for x = r / c < 1; it is 0 beyond:
enum class CutoffFunction {
  cosine,     ///< (cos(pi x) + 1) / 2
  polynomial  ///< 1 - 28 x^6 + 48 x^7 - 21 x^8, whose second derivative is continuous, too
};

/// Radial functions of vectors d of length r within a cutoff c. The row of a vector has the K + 4 columns
///
///     fc(r) b_k(r), k = 1 .. K        fc(r)        d / r (3 columns)
///
/// For r = 0 they are the limits of b_k, 1 and 0 0 0, and all derivatives are 0.
struct RadialFunctions {
  double cutoff = 1;
  Index num_basis = 1;  ///< K
  RadialBasis basis = RadialBasis::sinc;
  CutoffFunction cutoff_function = CutoffFunction::cosine;

  [[nodiscard]] Index columns() const noexcept { return num_basis + 4; }
};

/// Writes the rows of d [n, 3] to out [n, K + 4].
void radial_rows(const RadialFunctions& f, const Tensor& d, Tensor& out);
/// The derivative in the direction t [n, 3]: out = J t, with J the derivative of a row in its vector.
void radial_rows_tangent(const RadialFunctions& f, const Tensor& d, const Tensor& t, Tensor& out);
/// The gradient: out [n, 3] = g J for g [n, K + 4].
void radial_rows_backward(const RadialFunctions& f, const Tensor& d, const Tensor& g, Tensor& out);
/// The gradient of g . (J t) in d: out [n, 3].
void radial_rows_tangent_backward(const RadialFunctions& f, const Tensor& d, const Tensor& t, const Tensor& g,
                                  Tensor& out);
}}  // namespace sar
