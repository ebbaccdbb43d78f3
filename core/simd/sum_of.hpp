// SPDX-License-Identifier: MIT

/// Sums along a row in a fixed order that vectorizes.
#pragma once

#include <sar/config.hpp>

#include <sar/core/isa/isa_begin.hpp>

/// Returns the sum of term(j) over [0, n), computed with 64 / sizeof(Sum) partial sums. A compiler may not
/// split a floating-point sum by itself.
template <class Sum = real, class Term>
inline Sum sum_of(Index n, const Term& term) {
  constexpr Index lanes = 64 / static_cast<Index>(sizeof(Sum));
  if (n < lanes) {
    Sum sum = 0;
    for (Index j = 0; j < n; ++j) sum += term(j);
    return sum;
  }
  Sum part[lanes] = {};
  Index j = 0;
  for (; j + lanes <= n; j += lanes)
    for (Index l = 0; l < lanes; ++l) part[l] += term(j + l);
  for (Index l = 0; j < n; ++j, ++l) part[l] += term(j);
  for (Index half = lanes / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

#include <sar/core/isa/isa_end.hpp>
