// SPDX-License-Identifier: MIT

/// RowWindow: memory of each rank that other ranks read with one-sided communication; ScatteredRows. For the
/// sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>

#include <mpi.h>

#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Rows first to last - 1 of a rank.
struct RowRange {
  Index first, last;
};

/// An MPI window over `bytes` bytes of each rank, open for reading during its whole lifetime.
class RowWindow : NonCopyable {
 public:
  /// Collective. `memory` keeps the bytes alive; if it is null, the bytes must outlive the window.
  RowWindow(const Communicator& comm, const std::byte* mine, Index bytes, std::shared_ptr<const void> memory);
  /// Waits for the other ranks, which may still read. If that is impossible, because this rank is leaving by
  /// an exception or the ranks make different calls, the window and `memory` are kept until the next
  /// RowWindow of the communicator or the end of the program (of the communicator, if it is of a session).
  ~RowWindow();

  /// Returns how many rows one get() may read; at least 1.
  [[nodiscard]] Index max_rows(Index row_bytes) const;
  /// Starts reading the rows of the given ranges of another rank `owner`, one range after another, to `out`
  /// in one message; they are there after wait(). At most max_rows() rows. Throws CommunicationError if MPI
  /// has no window.
  void get(int owner, std::span<const RowRange> ranges, Index row_bytes, std::byte* out) const;
  /// Waits until all get() calls of this rank are complete.
  void wait() const;
  /// To be called by the owner after a change of the memory, before a synchronization point.
  void changed() const;

 private:
  struct Open;
  struct Windows;
  static Windows& all();
  static void free_left_behind(const Communicator& comm);
  static void free_all(MPI_Comm of_session) noexcept;
  static void free_of_session(MPI_Comm comm) noexcept;

  Communicator comm_;
  std::list<Open>::iterator open_;  // an element of all().list
};

// ScatteredRows: rows of one owner that are not contiguous. For the sources of comm/ only.

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
