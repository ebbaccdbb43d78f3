// SPDX-License-Identifier: MIT

/// ScatteredRows: rows of one owner that are not contiguous. For the sources of comm/ only.
#pragma once

#include <sar/comm/rows/row_window.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstddef>
#include <iterator>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Reads scattered rows, some at a time. Each memory range is a separate transfer below MPI, which costs as
/// much as some KiB, so small gaps between rows are read, too.
class ScatteredRows {
 public:
  /// Row rows[k] of the owner is requested as row places[k].
  ScatteredRows(int owner, std::span<const Index> rows, std::span<const Index> places);

  /// Returns whether all rows have been requested.
  [[nodiscard]] bool done() const noexcept { return next_ == std::ssize(wanted_); }
  /// Requests the next rows in one message of at most `most` rows, gaps included; returns the number of rows
  /// in the message. After window.wait(), they are in a buffer of this object, which must not be destroyed
  /// before.
  Index get(const RowWindow& window, Index row_bytes, Index most);
  /// Copies the rows of the last get() to their places in `out`.
  void copy_to(std::byte* out, Index row_bytes) const;

 private:
  struct Wanted {
    Index row, place;
  };
  int owner_;
  Array<Wanted> wanted_;        // sorted by row
  Index first_ = 0, next_ = 0;  // the last get() requested wanted_[first_] to wanted_[next_ - 1]
  Array<Index> from_;           // their row positions in the buffer
  Array<std::byte> buffer_;
};

}}  // namespace sar
