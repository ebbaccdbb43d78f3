// SPDX-License-Identifier: MIT

// One-sided reads (MPI-3): the window is locked for all ranks from its creation on (MPI_Win_lock_all), so
// get() needs no help of its owner's program: one MPI_Get with a datatype of all ranges. wait() flushes
// all reads of this rank. MPI frees windows collectively: a window that its rank leaves by an exception
// stays in a list until all ranks have left it, or until the program ends: at MPI_Finalize, or with the last
// handle of a communicator of a session.
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/row_window.hpp>
#include <sar/comm/status.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// An MPI datatype that is freed at the end of a scope.
struct OwnedType {
  MPI_Datatype type = MPI_DATATYPE_NULL;

  OwnedType() = default;
  OwnedType(const OwnedType&) = delete;
  OwnedType& operator=(const OwnedType&) = delete;
  ~OwnedType() {
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
  }
};

/// Takes the windows that `is_wanted` out of the list.
template <class Windows, class Predicate>
auto take(Windows& windows, const Predicate& is_wanted) {
  decltype(windows.list) taken;
  const std::scoped_lock lock(windows.mutex);
  for (auto window = windows.list.begin(); window != windows.list.end();) {
    const auto next = std::next(window);
    if (is_wanted(*window)) taken.splice(taken.end(), windows.list, window);
    window = next;
  }
  return taken;
}

/// Returns a number that no other window of the program has, the same on all ranks and increasing within the
/// communicator: the windows that rank 0 has numbered so far, and which process that is. Collective.
Index new_number(const Communicator& comm) {
  static std::atomic<Index> numbered{0};
  const auto [process, processes] = process_number();
  Index number = comm.rank() == 0 ? numbered++ * processes + process : 0;
  comm.broadcast(std::span(&number, 1), 0);
  return number;
}

}  // namespace

/// A window and everything it needs while it is open.
struct RowWindow::Open {
  MPI_Comm comm;                     // of the RowWindow
  std::optional<Communicator> kept;  // until MPI_Finalize, if it is not of a session
  std::shared_ptr<const void> memory;
  Index number;  // see new_number()
  MPI_Win window = MPI_WIN_NULL;
  bool locked = false;
  bool left_behind = true;  // until all ranks have made it

  // Not every MPI can create a window over every network; ranks that never call pull() need none.
  void create(const Communicator& made_with, const std::byte* mine, Index bytes) {
    const int code = MPI_Win_create(const_cast<std::byte*>(mine), static_cast<MPI_Aint>(bytes), 1,  // NOLINT
                                    MPI_INFO_NULL, comm, &window);
    if (made_with.all_reduce(code == MPI_SUCCESS ? 1 : 0, ReduceOp::min) == 0) {
      window = MPI_WIN_NULL;
      return;
    }
    check_mpi(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window), "MPI_Win_lock_all");
    locked = true;
  }

  void free() noexcept {
    if (window == MPI_WIN_NULL || is_fork()) return;
    if (locked) MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    window = MPI_WIN_NULL;
    locked = false;
  }
};

/// The windows of all communicators. Threads change the list under the mutex, and an element without it: only
/// the thread that calls on its communicator does. No thread waits for other ranks while it holds the mutex.
struct RowWindow::Windows {
  std::mutex mutex;
  std::list<Open> list;
};

// Never destroyed: global objects of a host program may be destroyed later.
RowWindow::Windows& RowWindow::all() {
  static auto* const windows = new Windows;
  return *windows;
}

// All ranks free a window together, so only windows that every rank has left behind can be freed.
void RowWindow::free_left_behind(const Communicator& comm) {
  Windows& windows = all();
  const auto is_left_here = [&](const Open& open) { return open.comm == comm.handle() && open.left_behind; };
  std::vector<Index> mine;
  {
    const std::scoped_lock lock(windows.mutex);
    for (const Open& open : windows.list)
      if (is_left_here(open)) mine.push_back(open.number);
  }
  const std::vector<Index> numbers = comm.all_gather(std::span<const Index>(mine));
  std::list<Open> freed = take(windows, [&](const Open& open) {
    return is_left_here(open) && std::ranges::count(numbers, open.number) == comm.size();
  });
  for (Open& open : freed) open.free();
}

// Windows must be freed before MPI_Finalize. All ranks free them in the order of their numbers: with several
// threads the order of creation differs between ranks. Only windows left behind are erased; destroying their
// last communicator handle writes the file of SAR_TRACE.
void RowWindow::free_all(MPI_Comm of_session) noexcept {
  if (of_session != MPI_COMM_NULL) return free_of_session(of_session);
  std::list<Open>& list = all().list;  // no other thread calls any more
  list.sort([](const Open& a, const Open& b) { return a.number < b.number; });
  for (Open& open : list) open.free();
  std::erase_if(list, [](const Open& open) { return open.left_behind; });
}

// The last handle of the communicator is being destroyed, so all its windows are left behind. Other ranks may
// still use them.
void RowWindow::free_of_session(MPI_Comm comm) noexcept {
  std::list<Open> freed = take(all(), [&](const Open& open) { return open.comm == comm; });
  if (freed.empty()) return;
  try {
    wait_for_end(comm);
  } catch (const std::exception&) {  // MPI has failed, which another call reports
  }
  freed.sort([](const Open& a, const Open& b) { return a.number < b.number; });
  for (Open& open : freed) open.free();
}

RowWindow::RowWindow(const Communicator& comm, const std::byte* mine, Index bytes,
                     std::shared_ptr<const void> memory)
    : comm_(comm) {
  comm.agree([&] {
    free_left_behind(comm);
    at_program_end(comm.handle(), free_all);
    std::optional<Communicator> kept;
    if (!is_of_session(comm.handle())) kept = comm;
    std::list<Open> made;
    made.push_back({comm.handle(), std::move(kept), std::move(memory), new_number(comm)});
    comm.synchronize("RowWindow");  // from here on, only MPI can fail
    open_ = made.begin();
    {
      const std::scoped_lock lock(all().mutex);
      all().list.splice(all().list.end(), made);
    }
    if (comm.size() > 1)
      open_->create(comm, mine,
                    bytes);  // with one rank no one reads, and not every MPI can create such a window
  });
  open_->left_behind = false;
}

RowWindow::~RowWindow() {
  if (mpi_runs()) {
    open_->left_behind = true;
    if (std::uncaught_exceptions() > 0) return;
    try {
      comm_.synchronize("the end of a distributed tensor");
    } catch (const std::exception&) {  // another rank reports it
      return;
    }
    open_->free();
  }
  std::list<Open> ended;  // destroyed without the mutex: it may hold the last handle of the communicator
  const std::scoped_lock lock(all().mutex);
  ended.splice(ended.end(), all().list, open_);
}

Index RowWindow::max_rows(Index row_bytes) const {
  const auto most = static_cast<Index>(std::min<std::size_t>(comm_.max_collective_size(), INT_MAX));
  return std::max<Index>(1, most / row_bytes);
}

void RowWindow::get(int owner, std::span<const RowRange> ranges, Index row_bytes, std::byte* out) const {
  require<CommunicationError>(open_->window != MPI_WIN_NULL,
                              "pull: MPI cannot read the memory of other ranks over this network "
                              "(MPI_Win_create fails), expected one "
                              "that it can, or Open MPI with OMPI_MCA_osc=pt2pt; pull_all() does without");
  // One datatype that describes all ranges, so that one MPI_Get reads them.
  std::vector<int> lengths;
  std::vector<MPI_Aint> begins;
  int bytes = 0;
  for (const RowRange& range : ranges) {
    lengths.push_back(static_cast<int>((range.last - range.first) * row_bytes));
    begins.push_back(static_cast<MPI_Aint>(range.first * row_bytes));
    bytes += lengths.back();
  }
  OwnedType type;
  check_mpi(MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), begins.data(),
                                     MPI_BYTE, &type.type),
            "MPI_Type_create_hindexed");
  check_mpi(MPI_Type_commit(&type.type), "MPI_Type_commit");
  check_mpi(MPI_Get(out, bytes, MPI_BYTE, owner, 0, 1, type.type, open_->window), "MPI_Get");
}

void RowWindow::wait() const {
  if (open_->window != MPI_WIN_NULL) check_mpi(MPI_Win_flush_all(open_->window), "MPI_Win_flush_all");
}

void RowWindow::changed() const {
  if (open_->window != MPI_WIN_NULL) check_mpi(MPI_Win_sync(open_->window), "MPI_Win_sync");
}

// The rows are sorted by their position at the owner, O(n log n). Then one pass joins rows with gaps of at
// most 4 KiB to ranges, as many as fit one message. Bytes moved per row: received in the buffer with the
// gaps, then copied to its place.

ScatteredRows::ScatteredRows(int owner, std::span<const Index> rows, std::span<const Index> places)
    : owner_(owner), wanted_(rows.size()) {
  for (Index k = 0; k < std::ssize(wanted_); ++k) wanted_[k] = {rows[k], places[k]};
  if (!std::ranges::is_sorted(wanted_, {}, &Wanted::row)) std::ranges::sort(wanted_, {}, &Wanted::row);
}

Index ScatteredRows::get(const RowWindow& window, Index row_bytes, Index most) {
  constexpr Index near_bytes = Index{1} << 12;
  const Index gap = near_bytes / row_bytes;
  std::vector<RowRange> ranges;
  Index held = 0;
  from_.clear();
  // Rows at most `gap` behind the previous range extend it; the rows between are read and ignored.
  for (first_ = next_; !done(); ++next_) {
    const Index row = wanted_[next_].row;
    const bool near = held > 0 && row <= ranges.back().last + gap;
    const Index more = near ? std::max<Index>(0, row + 1 - ranges.back().last) : 1;
    if (held > 0 && held + more > most) break;
    held += more;
    if (near)
      ranges.back().last += more;
    else
      ranges.push_back({row, row + 1});
    from_.push_back(held - 1);
  }
  buffer_.resize(static_cast<std::size_t>(held * row_bytes));
  window.get(owner_, ranges, row_bytes, buffer_.data());
  return held;
}

void ScatteredRows::copy_to(std::byte* out, Index row_bytes) const {
  copy_rows(
      std::ssize(from_), row_bytes, buffer_.data(), [&](Index k) { return from_[k]; }, out,
      [&](Index k) { return wanted_[first_ + k].place; });
}
}}  // namespace sar
