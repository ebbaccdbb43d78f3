// SPDX-License-Identifier: MIT

/// Moments of columns, and batch normalization of local rows, forward and backward, with the caller's
/// statistics:
///
///     xhat_ij = (x_ij - mean_j) / sqrt(var_j + eps)
///     y_ij    = a(xhat_ij weight_j + bias_j)              a: identity, or ReLU and/or dropout
///
/// The backward pass needs only x and the dropout bits: xhat and the sign for ReLU are recomputed. Rows are
/// of type reals or bfloat16; everything is computed in `real`.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Count, mean and centred second moment of each column of a tensor, in double precision. Moments of two sets
// of rows merge without cancellation (Chan, Golub, LeVeque 1979). Results do not depend on the number of
// threads.

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

/// The coefficients of each column j:
///
///     d = x - center_j      xhat = d inv_std_j + xhat_shift_j      y = d scale_j + shift_j
///
/// center_j is the mean rounded to `real`, so that d is exact for x near the mean; the shifts contain the
/// rounding error.
struct BatchNormCoefficients {
  PassVector<real> center, inv_std, xhat_shift, scale, shift;

  explicit BatchNormCoefficients(Index columns);
  void set(Index j, double mean, double var, double eps, double weight, double bias);
};

/// The activation that follows the normalization in the same kernel.
struct NormActivation {
  bool relu = false;
  DropoutBits dropout = {};
};

/// y = a(xhat weight + bias). y may be x. Reads x and writes y once.
void batch_norm(const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
                TypedRows y);

/// The same for rows [first, first + count) of x, written to `y`, single-threaded.
void batch_norm_rows(const TypedRows& x, const BatchNormCoefficients& c, const NormActivation& activation,
                     Index first, Index count, TypedNumbers y);

/// Column sums of the backward pass, with grad the gradient of y and g the gradient before the activation:
///
///     sums_j = sum_i g_ij      sums_(F + j) = sum_i g_ij xhat_ij
///
/// 32 rows are added in `real`, their sums in double precision, in a fixed order. Reads x and grad once.
void batch_norm_backward_sums(const TypedRows& x, const BatchNormCoefficients& c,
                              const NormActivation& activation, const TypedRows& grad,
                              std::span<double> sums);

/// The terms of these sums for rows [first, first + count), single-threaded: terms [count, 2 F] = g, g xhat.
void batch_norm_backward_terms(const TypedRows& x, const BatchNormCoefficients& c,
                               const NormActivation& activation, const TypedRows& grad, Index first,
                               Index count, real* terms);

/// The gradient of x: dx_ij = scale_j (g_ij - mean_g_j - xhat_ij mean_gx_j). dx may be grad. Reads x and grad
/// and writes dx once.
void batch_norm_backward_x(const TypedRows& x, const BatchNormCoefficients& c,
                           const NormActivation& activation, const TypedRows& grad,
                           std::span<const real> mean_g, std::span<const real> mean_gx, TypedRows dx);
}}  // namespace sar
