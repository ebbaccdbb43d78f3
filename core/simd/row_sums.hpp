// SPDX-License-Identifier: MIT

/// Sums and maxima of many rows at once, and columns written a vector at a time: the inner loops of kernels
/// that normalize rows. For implementation files of core/.
///
/// A row is summed in the lanes of two vectors; the vectors of a group of rows are then added across their
/// lanes together, which takes two shuffles a row instead of eight. Functions of a column are written once
/// for vectors and for single numbers: they get an `at`, and at(row) is what row holds at the place at hand.
#pragma once

#include <sar/config.hpp>
#include <sar/core/simd/lanes.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

// Sums along a row in a fixed order that vectorizes.

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

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {

inline constexpr Index group = line_lanes;              ///< rows that are summed together
inline constexpr Index column_block = 32 * line_lanes;  ///< columns that are added up in `real`

struct AtVector {
  Index j;
  Index done = 0;  ///< places at the front that a vector before has covered: at the end of a row
  Line operator()(const real* row) const { return load<line_lanes>(row + j); }
  Line write(real* row, const Line& v, bool keep_done) const;
};
struct AtNumber {
  Index j;
  real operator()(const real* row) const { return row[j]; }
  real write(real* row, real value, bool) const { return row[j] = value; }
};

/// Writes v to the row, or, where what is done there is to be kept, the rest of v; returns v.
inline Line AtVector::write(real* row, const Line& v, bool keep_done) const {
  const Line to = keep_done && done > 0 ? last_lanes(v, line_lanes - done, (*this)(row)) : v;
  store<line_lanes>(row + j, to);
  return v;
}

struct Plus {
  static constexpr real neutral = 0;
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
/// Numbers that are NaN do not count.
struct Larger {
  static constexpr real neutral = -std::numeric_limits<real>::infinity();
  real operator()(real a, real b) const { return b > a ? b : a; }
  Line operator()(const Line& a, const Line& b) const { return b > a ? b : a; }
};

/// term(at) over the columns [begin, end), combined in the lanes of a vector.
template <class Op, class Term>
inline Line lanes_of(Index begin, Index end, const Op& op, const Term& term) {
  const Line neutral = Line{} + Op::neutral;
  Line a = neutral, b = neutral;
  if (end - begin < line_lanes) {
    real all = Op::neutral;
    for (Index j = begin; j < end; ++j) all = op(all, term(AtNumber{j}));
    a[0] = all;
    return a;
  }
  Index j = begin;
  for (; j + 2 * line_lanes <= end; j += 2 * line_lanes) {
    a = op(a, term(AtVector{j}));
    b = op(b, term(AtVector{j + line_lanes}));
  }
  if (j + line_lanes <= end) {
    a = op(a, term(AtVector{j}));
    j += line_lanes;
  }
  if (j < end)
    b = op(b, last_lanes(term(AtVector{end - line_lanes, line_lanes - (end - j)}), end - j, neutral));
  return op(a, b);
}

/// Lane r is vector r, combined over its lanes.
template <class Op, std::size_t... I>
inline Line across(Line (&of_row)[line_lanes], const Op& op, std::index_sequence<I...>) {
  for (Index n = line_lanes / 2; n > 0; n /= 2)
    for (Index i = 0; i < n; ++i) {
      const Line &a = of_row[2 * i], &b = of_row[2 * i + 1];
      of_row[i] = op(__builtin_shufflevector(a, b, static_cast<int>(2 * I)...),
                     __builtin_shufflevector(a, b, static_cast<int>(2 * I + 1)...));
    }
  return of_row[0];
}

/// results[r]: the terms of row r < count over n columns, combined; term_of_row(r) is a function of `at`.
template <class Op, class Result, class TermOfRow>
inline void combine_rows(Index count, Index n, const Op& op, const TermOfRow& term_of_row,
                         Result (&results)[group]) {
  std::fill_n(results, group, Result{Op::neutral});
  for (Index begin = 0; begin < n; begin += column_block) {
    const Index end = std::min(n, begin + column_block);
    Line of_row[line_lanes];
    for (Index r = 0; r < group; ++r)
      of_row[r] = r < count ? lanes_of(begin, end, op, term_of_row(r)) : Line{};
    const Line block = across(of_row, op, std::make_index_sequence<static_cast<std::size_t>(line_lanes)>());
    real numbers[group];
    store<line_lanes>(numbers, block);
    for (Index r = 0; r < group; ++r) {
      if constexpr (std::is_same_v<Op, Plus>)
        results[r] += static_cast<Result>(numbers[r]);
      else
        results[r] = op(results[r], numbers[r]);
    }
  }
}

/// The sum of term(at) over n places: in `real` over 32 terms a lane at most, beyond that in double
/// precision.
template <class Term>
inline double sum(Index n, const Term& term) {
  double all = 0;
  for (Index begin = 0; begin < n; begin += column_block) {
    const Line part = lanes_of(begin, std::min(n, begin + column_block), Plus{}, term);
    for (Index l = 0; l < line_lanes; ++l) all += static_cast<double>(part[l]);
  }
  return all;
}

/// The sums of the terms of each row: in `real` over 32 terms a lane at most, beyond that in double
/// precision.
template <class TermOfRow>
inline void sum_rows(Index count, Index n, const TermOfRow& term_of_row, double (&sums)[group]) {
  combine_rows(count, n, Plus{}, term_of_row, sums);
}

/// The largest number of each row, without those that are NaN; -infinity when there is none.
template <class TermOfRow>
inline void largest_of_rows(Index count, Index n, const TermOfRow& term_of_row, real (&largest)[group]) {
  combine_rows(count, n, Larger{}, term_of_row, largest);
}

/// to[j] = value(at j) for n columns; value may read `to`.
template <class Value>
inline void write_columns(real* to, Index n, const Value& value) {
  if (n < line_lanes) {
    for (Index j = 0; j < n; ++j) to[j] = value(AtNumber{j});
    return;
  }
  const Line last = value(AtVector{n - line_lanes});
  for (Index j = 0; j + line_lanes <= n; j += line_lanes) {
    const Line v = value(AtVector{j});
    store<line_lanes>(to + j, v);
  }
  store<line_lanes>(to + n - line_lanes, last);
}

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>
