// SPDX-License-Identifier: MIT

/// Rows, columns, shapes.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/variable.hpp>

#include <initializer_list>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Concatenates along the last dimension; the other dimensions must be equal. Keeps nothing.
Variable concat_columns(std::span<const Variable> parts);
Variable concat_columns(std::initializer_list<Variable> parts);
/// Concatenates along the first dimension; the other dimensions must be equal. Keeps nothing.
Variable concat_rows(std::span<const Variable> parts);
Variable concat_rows(std::initializer_list<Variable> parts);

/// Returns x[..., begin:end], columns of the last dimension, as a copy. Keeps nothing.
Variable slice_columns(Variable x, Index begin, Index end);
/// Returns x[begin:end], which shares the memory of x. Keeps nothing.
Variable slice_rows(Variable x, Index begin, Index end);
/// Returns the same elements in another shape, sharing the memory of x. Keeps nothing.
Variable reshape(Variable x, const Shape& shape);

/// Returns y[i] = x[ids[i]]. Keeps the ids.
Variable gather_rows(Variable x, RowIds ids);
/// Returns y [num_rows, ...] with y[ids[i]] += x[i], in the order of i. Keeps the ids.
Variable scatter_add_rows(Variable x, RowIds ids, Index num_rows);

}}  // namespace sar
