// SPDX-License-Identifier: MIT

/// ReLU and dropout in one pass.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/nn/modules/dropout.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns dropout(relu(x), row_ids), computed as one operation. The backward pass keeps only the
/// result y:
///
///     dx = dy / (1 - p) where y > 0, and 0 elsewhere
///
/// Values, gradients and random draws are those of the two separate operations; `row_ids` as in Dropout.
/// Throws ShapeError if the numbers of rows and ids differ.
[[nodiscard]] Variable relu_dropout(Variable x, Dropout& dropout, const RowIds& row_ids);

}}  // namespace sar
