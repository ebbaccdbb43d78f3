// SPDX-License-Identifier: MIT

/// Rows of the edges between atoms: radial functions of their vectors, and messages of scalars and vectors.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/nn/atoms/radial.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Returns, for vectors d [n, 3] of length r and a cutoff c, the rows [n, num_basis + 4] of
///
///     fc(r) b_k(r), k = 1 .. num_basis        fc(r)        d / r (3 columns)
///
/// with the basis b and the cutoff function fc of `functions`, and for r = 0 with the limits of b_k, 1 and 0
/// 0 0, where derivatives are 0. Has a tangent. Keeps d.
Variable radial_rows(const Variable& d, const RadialFunctions& functions);

/// Returns the messages [n, 4 F] of phi [n, 3 F], filter [n, 3 F], direction d [n, 3] and vectors v [n, 3, F]
/// (undefined: 0): with (a, b, g) = phi * filter,
///
///     a, b d_1 + g v_1, b d_2 + g v_2, b d_3 + g v_3
///
/// Has a tangent. Keeps its operands.
Variable vector_messages(const Variable& phi, const Variable& filter, const Variable& direction,
                         const Variable& vectors = {});

}}  // namespace sar
