/// ScatteredRows: rows of one owner that are read here and there. For the sources of comm/ only.
#pragma once

#include <sar/comm/rows/row_window.hpp>
#include <sar/core/memory.hpp>

#include <cstddef>
#include <iterator>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Reads them some at a time. Each range of memory is a request of its own below MPI, which costs as much as
/// some KiB; so what lies between near rows is read, too.
class ScatteredRows {
 public:
  /// Row rows[k] of the owner is wanted as row places[k].
  ScatteredRows(int owner, std::span<const Index> rows, std::span<const Index> places);

  /// All rows were asked for.
  [[nodiscard]] bool done() const noexcept { return next_ == std::ssize(wanted_); }
  /// Asks for the next ones, in one message of at most `most` rows, with those between; returns how many rows
  /// travel. They are in a buffer of this object after window.wait(), and it must not be destroyed before.
  Index get(const RowWindow& window, Index row_bytes, Index most);
  /// Copies what the last get() has read to the rows of `out` where it is wanted.
  void copy_to(std::byte* out, Index row_bytes) const;

 private:
  struct Wanted {
    Index row, place;
  };
  int owner_;
  Array<Wanted> wanted_;        // ascending rows
  Index first_ = 0, next_ = 0;  // the last get() has asked for wanted_[first_] ... wanted_[next_ - 1]
  Array<Index> from_;           // where they lie in the buffer
  Array<std::byte> buffer_;
};

}  // namespace sar
