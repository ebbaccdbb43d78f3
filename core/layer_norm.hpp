/// Layer normalization of rows, forward and backward:
///
///     xhat_ij = (x_ij - mean_i) / sqrt(var_i + eps)        y_ij = xhat_ij weight_j + bias_j
///
/// mean_i and var_i (biased) are those of row i. A mean is taken twice: of the row, and of the deviations
/// from it, so that a large one costs no digits. Sums are those of row_lanes.hpp. Weight and bias are vectors
/// of one element per column, or both undefined.
///
/// Memory traffic: each function reads its operands and writes its result once, a group of rows at a time,
/// which stays in the first-level cache for the passes over it; statistics are computed again wherever they
/// are needed. Time, to that of a copy of the tensors that are read (bench_rows): layer_norm 1.3 to 2.1 (the
/// two passes of the statistics show at 32 columns), the others 0.8 to 1.5.
#pragma once

#include <sar/core/tensor.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// y = xhat weight + bias
void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y);

/// The gradients of weight and bias, for F columns:
///
///     sums_j = sum_i g_ij xhat_ij        sums_(F + j) = sum_i g_ij
///
/// in double precision and in a fixed order.
void layer_norm_backward_sums(const Tensor& x, const Tensor& grad, double eps, std::span<double> sums);

/// The gradient of x, with h = g weight:
///
///     dx_ij = (h_ij - mean_j h_ij - xhat_ij mean_j(h_ij xhat_ij)) / sqrt(var_i + eps)
///
/// Overwrites g with dx.
void layer_norm_backward_x(const Tensor& x, const Tensor& weight, double eps, Tensor& g);

}  // namespace sar
