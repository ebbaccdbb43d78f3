// SPDX-License-Identifier: MIT

/// Layer normalization of rows, forward and backward:
///
///     xhat_ij = (x_ij - mean_i) / sqrt(var_i + eps)        y_ij = xhat_ij weight_j + bias_j
///
/// mean_i and var_i (biased) are the statistics of row i. The mean is computed twice, of the row and then of
/// the deviations from the first mean, so that a large mean costs no precision. Sums are computed as in
/// row_sums.hpp. Weight and bias are vectors with one element per column, or both undefined.
///
/// Memory traffic: each function reads its operands and writes its result once. It works on a group of rows
/// that stays in the L1 cache for several passes; the statistics are recomputed in the backward functions
/// instead of stored.
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// y = xhat weight + bias
void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y);

/// The gradients of weight and bias, for F columns:
///
///     sums_j = sum_i g_ij xhat_ij        sums_(F + j) = sum_i g_ij
///
/// summed in double precision in a fixed order.
void layer_norm_backward_sums(const Tensor& x, const Tensor& grad, double eps, std::span<double> sums);

/// The gradient of x, with h = g weight:
///
///     dx_ij = (h_ij - mean_j h_ij - xhat_ij mean_j(h_ij xhat_ij)) / sqrt(var_i + eps)
///
/// Overwrites g with dx.
void layer_norm_backward_x(const Tensor& x, const Tensor& weight, double eps, Tensor& g);

}}  // namespace sar
