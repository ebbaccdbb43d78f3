/// RowWindow: memory of each rank that the others read while it does something else. For the sources of comm/
/// only.
#pragma once

#include <sar/comm/communicator.hpp>

#include <mpi.h>

#include <cstddef>
#include <list>
#include <memory>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Rows first, ..., last - 1 of a rank.
struct RowRange {
  Index first, last;
};

/// A window of MPI's one-sided communication over `bytes` bytes of each rank, open for reading from the first
/// moment to the last.
class RowWindow {
 public:
  /// `memory` keeps the bytes alive, unless it is null: then they live as long as the window. Collective.
  RowWindow(const Communicator& comm, const std::byte* mine, Index bytes, std::shared_ptr<const void> memory);
  /// Waits for the other ranks, which may still read. Where that is impossible, because this rank is leaving
  /// by an exception or the ranks make different calls, the window and `memory` wait for the next RowWindow
  /// of the communicator, or the end of the program, instead.
  ~RowWindow();
  RowWindow(const RowWindow&) = delete;
  RowWindow& operator=(const RowWindow&) = delete;

  /// How many rows one get() may read: at least 1.
  [[nodiscard]] Index max_rows(Index row_bytes) const;
  /// Begins to read the rows of these ranges of another rank `owner`, one after the other, to `out`, in one
  /// message; they are there after wait(). At most max_rows() rows. Throws CommunicationError where MPI has
  /// no window.
  void get(int owner, std::span<const RowRange> ranges, Index row_bytes, std::byte* out) const;
  /// Waits for everything that this rank has asked for.
  void wait() const;
  /// Between a change of the memory by its owner and a synchronization point.
  void changed() const;

 private:
  struct Open;
  static std::list<Open>& all();
  static void free_left_behind(const Communicator& comm);
  static void free_all() noexcept;

  std::list<Open>::iterator open_;  // among all()
};

}  // namespace sar
