// SPDX-License-Identifier: MIT

/// Normalization of rows to unit length.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns y[i] = scale x[i] / max(|x[i]|, 1e-12) for x [n, d] and scale [1], with the Euclidean
/// norm computed in double precision. Keeps x and scale.
Variable scaled_unit_rows(const Variable& x, const Variable& scale);

}}  // namespace sar
