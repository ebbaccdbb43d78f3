// SPDX-License-Identifier: MIT

/// Layer normalization.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns y_ij = (x_ij - mean_i) / sqrt(var_i + eps) * weight_j + bias_j for x [n, D], where mean_i and
/// var_i (biased) are the statistics of row i; weight [D] and bias [D], or both undefined. Keeps x and the
/// weight.
Variable layer_norm(const Variable& x, const Variable& weight = {}, const Variable& bias = {},
                    double eps = 1e-5);

}}  // namespace sar
