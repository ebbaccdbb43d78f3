// SPDX-License-Identifier: MIT

/// The inner loops of kernels that combine one row with gathered rows, several heads at a time: weighted
/// sums, dot products and scores. For implementation files.
///
/// Loop order: tiles of columns, then gathered rows. The columns of the combined row, and its sums, stay in
/// registers over all gathered rows; each tile prefetches its columns of the rows of the next batch.
#pragma once

#include <sar/core/simd/lanes.hpp>
#include <sar/core/simd/tiles.hpp>

#include <cmath>
#include <cstdint>

#include <sar/core/isa/isa_begin.hpp>

namespace lanes {

/// Gathered rows. Loops use `heads` times `dim` of their columns, starting at column `first`. next[i] is the
/// i-th row of the next batch; it is prefetched when row i is used. Null disables prefetching: of several
/// loops over the same rows, only the last one prefetches.
template <class X>
struct RowsOf {
  const X* const* at;
  const X* const* next;
  Index n;
  Index first;
  Index heads;
  Index dim;

  [[nodiscard]] RowsOf without_prefetch() const { return {at, nullptr, n, first, heads, dim}; }
};
using Rows = RowsOf<real>;

// Shapes: x, to and a are [heads, dim]; factor and out are [n, heads]; keep is [heads]. Each function is
// compiled once, in row_loops.cpp, for rows of real and of Bfloat16 numbers.

/// Computes to = keep to + sum over the rows i of factor[i] rows[i]. If keep is null, `to` is overwritten
/// without being read.
template <class X>
void add_rows(const RowsOf<X>& rows, const real* factor, const real* keep, real* to);

/// Computes out[i] = <x, rows[i]>.
template <class X>
void dots(const RowsOf<X>& rows, const real* x, real* out);

/// Computes dots() and add_rows() in one pass over the rows.
template <class X>
void dots_and_add(const RowsOf<X>& rows, const real* x, real* out, const real* factor, const real* keep,
                  real* to);

/// Returns the number of reals that store the sign bits of a row's columns.
Index sign_words(Index heads, Index dim);

/// Computes out[i] = <a, leaky_relu(x + rows[i])>.
template <class X>
void leaky_dots(const RowsOf<X>& rows, const real* x, const real* a, real slope, real* out);

/// Computes the sum over the rows i of factor[i] in columns where x + rows[i] is above 0, and slope factor[i]
/// elsewhere. Stores these sign bits of row i at signs + i sign_words(), unless null.
template <class X>
void sum_by_signs_of(const RowsOf<X>& rows, const real* x, const real* factor, real slope, real* sums,
                     real* signs);

/// Computes the same sum over n rows from the sign bits that sum_by_signs_of() stored, without reading the
/// rows. Factors and signs of row i are at factor + i factor_stride and signs + i signs_stride.
void sum_by_signs(Index n, Index heads, Index dim, const real* factor, Index factor_stride, const real* signs,
                  Index signs_stride, real slope, real* sums);

/// Computes to += x y elementwise.
inline void add_products(Index n, const real* x, const real* y, real* to) {
  for (Index j = 0; j < n; ++j) to[j] += x[j] * y[j];
}

/// Computes to += factor x for each head.
void add_scaled(Index heads, Index dim, const real* factor, const real* x, real* to);

/// Computes to = x + factor (to - x) for each head.
void scale_from(Index heads, Index dim, const real* factor, const real* x, real* to);

/// Computes out[h] = <x[h], y[h]>.
void head_dots(Index heads, Index dim, const real* x, const real* y, real* out);

/// Updates the maximum (minimum) `best` and its argmax with messages m, of which column j is of edge
/// edge_of(j). NaN wins over numbers; of equal messages, and of several NaN, the edge with the smallest id
/// wins.
template <bool minimum, class X, class EdgeOf>
inline void take_extremum(Index n, const X* m, const EdgeOf& edge_of, const Index* ids, X* best,
                          std::int32_t* who) {
  std::int32_t ties = 0;
  for (Index j = 0; j < n; ++j) {
    const real value = number(m[j]), old = number(best[j]);
    const bool nan = std::isnan(value), was_nan = std::isnan(old);
    const bool wins = (minimum ? value < old : value > old) | (nan & !was_nan);
    ties |= (value == old) | (nan & was_nan) ? 1 : 0;
    best[j] = wins ? m[j] : best[j];
    who[j] = wins ? edge_of(j) : who[j];
  }
  if (ties == 0) return;
  for (Index j = 0; j < n; ++j) {
    const real value = number(m[j]);
    const bool nan = std::isnan(value);  // best is then NaN, too
    const bool same = (value == number(best[j])) | nan;
    const bool wins = same & (ids[edge_of(j)] < ids[who[j]]);
    best[j] = wins ? m[j] : best[j];
    who[j] = wins ? edge_of(j) : who[j];
  }
}

}  // namespace lanes

#include <sar/core/isa/isa_end.hpp>
