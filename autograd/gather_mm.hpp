// SPDX-License-Identifier: MIT

/// Products with a matrix for each type or row.
/// ops.hpp says what holds for all operations.
#pragma once

#include <sar/autograd/variable.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Returns y[i] = x[i] w[types[i]] for x [n, in]; y [n, out]. `w` has one matrix per type, [types, in, out],
/// or one block-diagonal matrix per type, [types, blocks, in / blocks, out / blocks]. Keeps x if w requires a
/// gradient, w if x does, and the row numbers grouped by type.
Variable gather_mm(Variable x, Variable w, std::span<const Index> types);

/// Returns y[i] = x[i] w[i] for x [n, in] and one matrix per row, w [n, in, out]; y [n, out]. Keeps x if w
/// requires a gradient, w if x does.
Variable bmm(Variable x, Variable w);

}}  // namespace sar
