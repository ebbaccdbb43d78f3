// SPDX-License-Identifier: MIT

/// Functions of each element or row: activations, softmax, dropout, normalization.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/random.hpp>

namespace sar { inline namespace SAR_PRECISION {

Variable relu(Variable x);  ///< max(x, 0), slope 0 at 0; keeps the result
/// x > 0 ? x : negative_slope x, for negative_slope >= 0; keeps the result
Variable leaky_relu(Variable x, real negative_slope = static_cast<real>(0.01));
Variable elu(Variable x, real alpha = 1);  ///< x > 0 ? x : alpha (exp(x) - 1); keeps the result
Variable sigmoid(Variable x);              ///< 1 / (1 + exp(-x)); keeps the result
Variable softplus(Variable x);             ///< log(1 + exp(x)); keeps the result
Variable tanh(Variable x);                 ///< keeps the result
Variable exp(Variable x);                  ///< keeps the result
Variable log(Variable x);                  ///< keeps x
Variable sqrt(Variable x);                 ///< slope infinite at 0; keeps the result
Variable abs(Variable x);                  ///< slope 0 at 0; keeps x
Variable silu(Variable x);                 ///< x / (1 + exp(-x)); keeps x

/// How gelu() computes the normal distribution function, like torch's argument `approximate`.
enum class GeluApproximation { none, tanh };
/// Returns x (1 + erf(x / sqrt(2))) / 2, or with GeluApproximation::tanh (Hendrycks & Gimpel, arXiv
/// 1606.08415) x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. Keeps x.
Variable gelu(Variable x, GeluApproximation approximation = GeluApproximation::none);

/// Returns min(max(x, low), high); a bound may be infinite. The slope is 1 where low <= x <= high, and 0
/// elsewhere; if low > high, the result is high, as in torch. Keeps x. Throws Error if a bound is NaN.
Variable clamp(Variable x, real low, real high);

/// Returns x to the power of a constant; NaN for x < 0 unless the exponent is an integer. The slope is 0 for
/// the exponent 0, also at x = 0. Keeps x.
Variable pow(Variable x, real exponent);

Variable softmax(Variable x);      ///< over the last dimension; keeps the result
Variable log_softmax(Variable x);  ///< over the last dimension; keeps the result

/// Sets each element to 0 with probability p, and to x / (1 - p) otherwise. The draw is a function of (key,
/// row_ids[i], column); `row_ids` are the original ids of the N rows, so the draws do not depend on the
/// partitioning. p = 0 is the identity. Keeps one bit per element. While a tape records and other handles
/// refer to x, the result is deferred: it is computed from x when it is read, and x must not change before.
/// Throws Error unless 0 <= p < 1.
Variable dropout(Variable x, double p, const RandomKey& key, RowIds row_ids);

// Layer normalization.

/// Returns y_ij = (x_ij - mean_i) / sqrt(var_i + eps) * weight_j + bias_j for x [n, D], where mean_i and
/// var_i (biased) are the statistics of row i; weight [D] and bias [D], or both undefined. Keeps x and the
/// weight.
Variable layer_norm(const Variable& x, const Variable& weight = {}, const Variable& bias = {},
                    double eps = 1e-5);

// Normalization of rows to unit length.

/// Local. Returns y[i] = scale x[i] / max(|x[i]|, 1e-12) for x [n, d] and scale [1], with the Euclidean
/// norm computed in double precision. Keeps x and scale.
Variable scaled_unit_rows(const Variable& x, const Variable& scale);
}}  // namespace sar
