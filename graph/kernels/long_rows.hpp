// SPDX-License-Identifier: MIT

/// Splits rows with many edges into parts that run in parallel. A part sums its terms in `real`; the parts of
/// a row are added in double precision. For implementation files.
#pragma once

#include <sar/core/memory/workspace.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/kernels/edge_cursor.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

class LongRows {
 public:
  static constexpr Index part_edges = 1024;  ///< a row with more edges is long

  /// Finds the long rows among `rows` rows with the edges [begin[i], end[i]).
  LongRows(const local_index* begin, const local_index* end, Index rows) {
    for (Index i = 0; i < rows; ++i) {
      if (end[i] - begin[i] <= part_edges) continue;
      rows_.push_back(i);
      first_part_.push_back(std::ssize(begin_));
      for (Index k = begin[i]; k < end[i]; k += part_edges) {
        before_.push_back(before_.empty() ? 0 : before_.back() + (end_.back() - begin_.back()));
        row_of_.push_back(static_cast<local_index>(i));
        begin_.push_back(static_cast<local_index>(k));
        end_.push_back(static_cast<local_index>(std::min<Index>(end[i], k + part_edges)));
      }
    }
    first_part_.push_back(std::ssize(begin_));
  }

  [[nodiscard]] Index parts() const { return std::ssize(begin_); }
  /// Returns the parts as ranges of edges; `rows` are the row numbers.
  [[nodiscard]] EdgeRanges ranges() const {
    return {parts(), row_of_.data(), begin_.data(), end_.data(), before_.data()};
  }
  /// Returns the parts of rows of `edges`; writes the destination of each part to `destinations`.
  [[nodiscard]] EdgeRanges ranges(const EdgeRanges& edges, PassVector<local_index>& destinations) const {
    destinations.resize(row_of_.size());
    for (Index i = 0; i < parts(); ++i) destinations[i] = static_cast<local_index>(edges.row(row_of_[i]));
    return {parts(), destinations.data(), begin_.data(), end_.data(), before_.data()};
  }
  /// Calls merge(row, first, last) for each long row with its parts [first, last). Rows run in parallel.
  template <class Merge>
  void for_rows(const Merge& merge) const {
    parallel_for(std::ssize(rows_), 1, [&](Index from, Index to) {
      for (Index n = from; n < to; ++n) merge(rows_[n], first_part_[n], first_part_[n + 1]);
    });
  }

 private:
  PassVector<Index> rows_, first_part_;
  PassVector<local_index> row_of_, begin_, end_, before_;  // one entry per part
};

/// Computes to = (add ? to : 0) + the sum of the rows [first, last) of parts, in double precision.
inline void sum_parts(const real* parts, Index first, Index last, Index width, bool add, real* to) {
  PassVector<double> sums(width, 0);
  for (Index part = first; part < last; ++part)
    for (Index j = 0; j < width; ++j) sums[j] += static_cast<double>(parts[part * width + j]);
  for (Index j = 0; j < width; ++j)
    to[j] = static_cast<real>((add ? static_cast<double>(to[j]) : 0) + sums[j]);
}

}}  // namespace sar
