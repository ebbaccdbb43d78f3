/// Sums along a row that vectorise.
#pragma once

#include <sar/config.hpp>

#include <sar/core/isa_begin.hpp>

/// Sum of term(j) over [0, n) as a fixed number of partial sums of the type Sum. The compiler may not divide
/// one sum so by itself.
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

#include <sar/core/isa_end.hpp>
