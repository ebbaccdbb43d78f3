// SPDX-License-Identifier: MIT

/// Rows of H heads side by side, [N, H, D].
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns y[i, h] = sum_d a[0, h, d] x[i, h, d] for a [1, H, D]; y [N, H]. Keeps x if a requires a gradient,
/// and a if x does.
Variable head_dots(Variable x, Variable a);
/// Returns the mean over the heads, [N, D]. Keeps nothing.
Variable head_mean(Variable x);

}}  // namespace sar
