/// Batch normalization of rows, forward and backward, on the calling rank: the caller gives the statistics.
///
///     xhat_ij = (x_ij - mean_j) / sqrt(var_j + eps)
///     y_ij    = a(xhat_ij weight_j + bias_j)              a: nothing, or ReLU and dropout
///
/// Nothing but x and the draws of the dropout are kept for the backward pass: xhat and the sign that ReLU
/// looks at are computed again.
#pragma once

#include <sar/core/dropout.hpp>
#include <sar/core/tensor.hpp>
#include <sar/core/workspace.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Per column j:
///
///     d = x - center_j      xhat = d inv_std_j + xhat_shift_j      y = d scale_j + shift_j
///
/// The center is the mean rounded to `real`, so that d is exact for x near the mean; the shifts hold the
/// rounding error.
struct BatchNormCoefficients {
  PassVector<real> center, inv_std, xhat_shift, scale, shift;

  explicit BatchNormCoefficients(Index columns);
  void set(Index j, double mean, double var, double eps, double weight, double bias);
};

/// What follows the normalization in the same operation.
struct NormActivation {
  bool relu = false;
  DropoutBits dropout = {};
};

/// y = a(xhat weight + bias). Reads x and writes y once; y may be x.
void batch_norm(const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation, Tensor& y);

/// The same for rows [first, first + count) of x, on this thread, to the rows from y on.
void batch_norm_rows(const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation,
                     Index first, Index count, real* y);

/// With grad the gradient of y and g the gradient before the activation:
///
///     sums_j = sum_i g_ij      sums_(F + j) = sum_i g_ij xhat_ij
///
/// over the rows, 32 terms in `real` and sums of these in double precision, in a fixed order. Reads x and
/// grad once.
void batch_norm_backward_sums(const Tensor& x, const BatchNormCoefficients& c,
                              const NormActivation& activation, const Tensor& grad, std::span<double> sums);

/// dx_ij = scale_j (g_ij - mean_g_j - xhat_ij mean_gx_j). Reads x and grad and writes dx once; dx may be
/// grad.
void batch_norm_backward_x(const Tensor& x, const BatchNormCoefficients& c, const NormActivation& activation,
                           const Tensor& grad, std::span<const real> mean_g, std::span<const real> mean_gx,
                           Tensor& dx);

}  // namespace sar
