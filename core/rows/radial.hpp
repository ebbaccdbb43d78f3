/// Kernels for the rows that describe vectors in three dimensions to a radial network.
#pragma once

#include <sar/core/tensor/tensor.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Radial functions of vectors d of length r within a cutoff c, with fc(r) = (cos(pi r / c) + 1) / 2 for r <
/// c, otherwise 0. The row of a vector has the K + 4 columns
///
///     fc(r) sin(k pi r / c) / r, k = 1 .. K        fc(r)        d / r (3 columns)
///
/// For r = 0 they are the limits k pi / c, 1 and 0 0 0, and all derivatives are 0.
struct RadialFunctions {
  double cutoff = 1;
  Index num_basis = 1;  ///< K

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
