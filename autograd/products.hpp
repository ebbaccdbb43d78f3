// SPDX-License-Identifier: MIT

/// Products with matrices. Of a constant left operand with sparse rows (sparse_variable.hpp), only the stored
/// values are read and kept.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

#include <optional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns a b for a [n, k], b [k, m]. Keeps b if a requires a gradient, and a if b does.
Variable matmul(Variable a, Variable b);

/// Returns x W^T + b like torch.nn.Linear: x [..., in], weight [out, in], bias [out] or undefined; result
/// [..., out]. Keeps x if the weight requires a gradient, and the weight if x does. With a type, the same
/// numbers in rows of it, for dense x: for a term that sums are added to (StartedSum::base_type()).
Variable linear(Variable x, Variable weight, Variable bias = {}, std::optional<NumberType> type = {});

/// Returns linear(x, weight, bias) for x [n, in] as rows of `shape`, n times out numbers, that are computed
/// when they are read and again after DeferredRows::release(). For rows that an operation reads in its
/// forward and in its backward pass, and that need not be in memory between them. Keeps x and the parameters.
Variable recomputed_linear(Variable x, Variable weight, Variable bias, const Shape& shape);

/// Returns x W + b for weight [in, out], the layout of DGL's GraphConv; otherwise like linear().
Variable affine(Variable x, Variable weight, Variable bias = {}, std::optional<NumberType> type = {});

/// Returns base + x W^T for base [n, out], x [n, in], weight W [out, in]; in the memory of `base` if no other
/// handle refers to it. Keeps x if the weight requires a gradient, and the weight if x does.
Variable add_linear(Variable base, const Variable& x, const Variable& weight);

// Products with a matrix for each type or row.

/// Returns y[i] = x[i] w[types[i]] for x [n, in]; y [n, out]. `w` has one matrix per type, [types, in, out],
/// or one block-diagonal matrix per type, [types, blocks, in / blocks, out / blocks]. Keeps x if w requires a
/// gradient, w if x does, and the row numbers grouped by type.
Variable gather_mm(Variable x, Variable w, std::span<const Index> types);

/// Returns y[i] = x[i] w[i] for x [n, in] and one matrix per row, w [n, in, out]; y [n, out]. Keeps x if w
/// requires a gradient, w if x does.
Variable bmm(Variable x, Variable w);
}}  // namespace sar
