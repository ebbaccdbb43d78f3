/// ReLU and dropout in one pass.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/nn/dropout.hpp>

namespace sar::inline SAR_PRECISION {

/// dropout(relu(x), row_ids) as one operation that keeps its result y alone for the backward pass:
///
///     dx = dy / (1 - p) where y > 0, and 0 elsewhere
///
/// Values, gradients and draws are those of the two operations; `row_ids` as in Dropout. Throws ShapeError
/// when the numbers of rows and ids differ. Local.
[[nodiscard]] Variable relu_dropout(Variable x, Dropout& dropout, const RowIds& row_ids);

}  // namespace sar
