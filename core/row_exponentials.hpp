/// What softmax and cross entropy take from a group of rows. For implementation files of core/.
#pragma once

#include <sar/core/row_lanes.hpp>
#include <sar/core/vector_math.hpp>

#include <sar/core/isa_begin.hpp>

/// With row_of(r) the numbers of row r < count <= row_lanes::group, `width` of them, and m_r the largest:
///
///     exponentials_rj = exp(row_rj - m_r)        sums_r = sum_j exponentials_rj        largest_r = m_r
///
/// A row with a NaN has the sum NaN. `exponentials` [count, width] may be the rows.
template <class RowOf>
inline void exponentials_of_rows(const RowOf& row_of, Index count, Index width, real* exponentials,
                                 double (&sums)[row_lanes::group], real (&largest)[row_lanes::group]) {
  row_lanes::largest_of_rows(
      count, width, [&](Index r) { return [row = row_of(r)](auto at) { return at(row); }; }, largest);
  for (Index r = 0; r < count; ++r) {
    const real* row = row_of(r);
    row_lanes::prefetch(row + row_lanes::group * width, width);
    row_lanes::write_columns(exponentials + r * width, width,
                             [=, m = largest[r]](auto at) { return at(row) - m; });
  }
  vector_math::exp(exponentials, exponentials, count * width);
  row_lanes::sum_rows(
      count, width, [=](Index r) { return [row = exponentials + r * width](auto at) { return at(row); }; },
      sums);
}

#include <sar/core/isa_end.hpp>
