// SPDX-License-Identifier: MIT

/// Sums and means, accumulated in double precision; they keep nothing for the backward pass.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The dimensions to reduce: all -> [1]; rows: the first dimension -> [D] (its extent is dropped); columns:
/// the last dimension -> [N, 1] (its extent becomes 1).
enum class ReduceDim { all, rows, columns };

/// Returns the shape of a sum over the given dimensions. Throws ShapeError for an undefined tensor's shape.
Shape summed_shape(const Shape& shape, ReduceDim over);

/// For authors of operations: returns scale times x, summed over the dimensions along which `shape` is
/// broadcast to the shape of x.
Variable sum_to_shape(const Variable& x, const Shape& shape, real scale);

/// Returns the sum over the given dimensions.
Variable sum(Variable x, ReduceDim over = ReduceDim::all);
/// Returns the mean over the given dimensions. Throws ShapeError if there are no elements.
Variable mean(Variable x, ReduceDim over = ReduceDim::all);

}}  // namespace sar
