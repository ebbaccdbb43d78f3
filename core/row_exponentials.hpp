/// What softmax and cross entropy take from a group of rows. For implementation files of core/.
///
/// With row_of(r) the numbers of row r < count <= row_lanes::group, `width` of them, and m_r the largest:
///
///     exponentials_rj = exp(row_rj - m_r)        sums_r = sum_j exponentials_rj        largest_r = m_r
///
/// A row with a NaN has the sum NaN. A row is read twice, from cache the second time.
#pragma once

#include <sar/core/vector_exp.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>

#include <sar/core/isa_begin.hpp>

template <class RowOf>
inline void largest_of(const RowOf& row_of, Index count, Index width, real (&largest)[row_lanes::group]) {
  row_lanes::largest_of_rows(
      count, width, [&](Index r) { return [row = row_of(r)](auto at) { return at(row); }; }, largest);
}

/// Rows shorter than a vector, one behind the other, so that exponentials are taken a vector at a time.
struct ShortRows {
  real differences[row_lanes::group * row_lanes::lanes];  ///< row - m
  real exponentials[row_lanes::group * row_lanes::lanes];

  template <class RowOf>
  ShortRows(const RowOf& row_of, Index count, Index width, const real (&largest)[row_lanes::group],
            double (&sums)[row_lanes::group]) {
    for (Index r = 0; r < count; ++r)
      for (Index j = 0; j < width; ++j) differences[r * width + j] = row_of(r)[j] - largest[r];
    std::fill(differences + count * width, std::end(differences), real{0});
    for (Index j = 0; j < count * width; j += row_lanes::lanes) {
      const row_lanes::Vector values = row_lanes::exp(row_lanes::AtVector{j}(differences));
      std::memcpy(exponentials + j, &values, sizeof values);
    }
    row_lanes::sum_rows(
        count, width, [&](Index r) { return [row = exponentials + r * width](auto at) { return at(row); }; },
        sums);
  }
};

/// sums and largest, without keeping the exponentials. `prefetch(r)` requests what is read or written after
/// this group; it is called between rows, where the processor computes and memory is idle.
template <class RowOf, class Prefetch>
inline void sum_exponentials(const RowOf& row_of, Index count, Index width, const Prefetch& prefetch,
                             double (&sums)[row_lanes::group], real (&largest)[row_lanes::group]) {
  largest_of(row_of, count, width, largest);
  if (width < row_lanes::lanes) {
    ShortRows(row_of, count, width, largest, sums);
    return;
  }
  row_lanes::sum_rows(
      count, width,
      [&](Index r) {
        prefetch(r);
        return [row = row_of(r), m = largest[r]](auto at) { return row_lanes::exp(at(row) - m); };
      },
      sums);
}

/// What is kept of the rows while they are summed: exp(row - m), or row - m.
enum class Keep { exponentials, differences };

/// The same, and `kept` [count, width], which may be the rows.
template <Keep what, class RowOf, class Prefetch>
inline void exponentials_of_rows(const RowOf& row_of, Index count, Index width, const Prefetch& prefetch,
                                 real* kept, double (&sums)[row_lanes::group],
                                 real (&largest)[row_lanes::group]) {
  largest_of(row_of, count, width, largest);
  if (width < row_lanes::lanes) {
    const ShortRows rows(row_of, count, width, largest, sums);
    std::copy_n(what == Keep::exponentials ? rows.exponentials : rows.differences, count * width, kept);
    return;
  }
  row_lanes::sum_rows(
      count, width,
      [&](Index r) {
        prefetch(r);
        return [row = row_of(r), m = largest[r], to = kept + r * width](auto at) {
          const auto difference = at(row) - m;
          const auto value = row_lanes::exp(difference);
          at.write(to, what == Keep::exponentials ? value : difference, to == row);
          return value;
        };
      },
      sums);
}

#include <sar/core/isa_end.hpp>
