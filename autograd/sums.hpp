// SPDX-License-Identifier: MIT

/// Sums and means, accumulated in double precision; they keep nothing for the backward pass. Rows of H heads.
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

// Rows of H heads side by side, [N, H, D].

/// Returns y[i, h] = sum_d a[0, h, d] x[i, h, d] for a [1, H, D]; y [N, H]. Keeps x if a requires a gradient,
/// and a if x does.
Variable head_dots(Variable x, Variable a);
/// Returns the mean over the heads, [N, D]. Keeps nothing.
Variable head_mean(Variable x);
}}  // namespace sar
