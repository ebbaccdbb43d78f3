/// Sums and means, accumulated in double precision; they keep nothing for the backward pass.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The dimensions to reduce: all -> [1]; rows: the first dimension -> [D] (its extent is dropped); columns:
/// the last dimension -> [N, 1] (its extent becomes 1).
enum class ReduceDim { all, rows, columns };

/// Returns the sum over the given dimensions.
Variable sum(Variable x, ReduceDim over = ReduceDim::all);
/// Returns the mean over the given dimensions. Throws ShapeError if there are no elements.
Variable mean(Variable x, ReduceDim over = ReduceDim::all);

}}  // namespace sar
