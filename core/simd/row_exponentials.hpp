// SPDX-License-Identifier: MIT

/// The exponentials of a group of rows, for softmax and cross entropy. For implementation files of core/.
///
/// For rows r < count <= lanes::group, where row_of(r) points to the `width` values of row r:
///
///     largest_r = max_j row_rj
///     exponentials_rj = exp(row_rj - largest_r)
///     sums_r = sum_j exponentials_rj
///
/// A row with a NaN has the sum NaN. Two passes over the group: maxima, then exponentials; the second pass
/// reads the rows from cache.
#pragma once

#include <sar/core/simd/vector_exp.hpp>

#include <algorithm>
#include <iterator>

#include <sar/core/isa/isa_begin.hpp>

/// largest[r] = maximum of row r.
template <class RowOf>
inline void largest_of(const RowOf& row_of, Index count, Index width, real (&largest)[lanes::group]) {
  lanes::largest_of_rows(
      count, width, [&](Index r) { return [row = row_of(r)](auto at) { return at(row); }; }, largest);
}

/// Rows shorter than a vector, stored one after another, so that every vector of exponentials is full.
struct ShortRows {
  real differences[lanes::group * lanes::line_lanes];  ///< row - largest
  real exponentials[lanes::group * lanes::line_lanes];

  template <class RowOf>
  ShortRows(const RowOf& row_of, Index count, Index width, const real (&largest)[lanes::group],
            double (&sums)[lanes::group]) {
    for (Index r = 0; r < count; ++r)
      for (Index j = 0; j < width; ++j) differences[r * width + j] = row_of(r)[j] - largest[r];
    std::fill(differences + count * width, std::end(differences), real{0});
    for (Index j = 0; j < count * width; j += lanes::line_lanes) {
      const lanes::Line values = lanes::exp(lanes::load<lanes::line_lanes>(differences + j));
      lanes::store<lanes::line_lanes>(exponentials + j, values);
    }
    lanes::sum_rows(
        count, width, [&](Index r) { return [row = exponentials + r * width](auto at) { return at(row); }; },
        sums);
  }
};

/// Computes sums and largest without storing the exponentials. `prefetch(r)` is called before the
/// exponentials of row r: it prefetches what the kernel reads or writes after this group, while the processor
/// is busy with arithmetic and memory is idle.
template <class RowOf, class Prefetch>
inline void sum_exponentials(const RowOf& row_of, Index count, Index width, const Prefetch& prefetch,
                             double (&sums)[lanes::group], real (&largest)[lanes::group]) {
  largest_of(row_of, count, width, largest);
  if (width < lanes::line_lanes) {
    ShortRows(row_of, count, width, largest, sums);
    return;
  }
  lanes::sum_rows(
      count, width,
      [&](Index r) {
        prefetch(r);
        return [row = row_of(r), m = largest[r]](auto at) { return lanes::exp(at(row) - m); };
      },
      sums);
}

/// What exponentials_of_rows() stores: exp(row - largest), or row - largest.
enum class Keep { exponentials, differences };

/// Computes sums and largest and stores `kept` [count, width], which may be the rows themselves.
template <Keep what, class RowOf, class Prefetch>
inline void exponentials_of_rows(const RowOf& row_of, Index count, Index width, const Prefetch& prefetch,
                                 real* kept, double (&sums)[lanes::group], real (&largest)[lanes::group]) {
  largest_of(row_of, count, width, largest);
  if (width < lanes::line_lanes) {
    const ShortRows rows(row_of, count, width, largest, sums);
    std::copy_n(what == Keep::exponentials ? rows.exponentials : rows.differences, count * width, kept);
    return;
  }
  lanes::sum_rows(
      count, width,
      [&](Index r) {
        prefetch(r);
        return [row = row_of(r), m = largest[r], to = kept + r * width](auto at) {
          const auto difference = at(row) - m;
          const auto value = lanes::exp(difference);
          at.write(to, what == Keep::exponentials ? value : difference, to == row);
          return value;
        };
      },
      sums);
}

#include <sar/core/isa/isa_end.hpp>
