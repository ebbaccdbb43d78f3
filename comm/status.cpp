#include <sar/comm/mpi_error.hpp>
#include <sar/comm/status.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();

template <std::size_t n>
void all_min(MPI_Comm comm, std::array<std::int64_t, n>& values) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(n), MPI_INT64_T, MPI_MIN, comm),
            "MPI_Allreduce");
}

/// Sends kind and text of rank `root` to all ranks. Returns whether this rank failed with the same. The text
/// passes through a fixed buffer: a rank without memory still takes part.
bool broadcast_failure(MPI_Comm comm, int root, bool is_root, const Failure& mine, GroupStatus& status) {
  std::array<std::int64_t, 2> head{static_cast<std::int64_t>(mine.kind),
                                   static_cast<std::int64_t>(std::strlen(mine.text))};
  const std::array<std::int64_t, 2> my_head = head;
  check_mpi(MPI_Bcast(head.data(), 2, MPI_INT64_T, root, comm), "MPI_Bcast");
  status.kind = static_cast<ErrorKind>(head[0]);
  bool same = mine.exception != nullptr && head == my_head;
  bool complete = true;
  std::array<char, 512> part{};
  for (std::int64_t begin = 0; begin < head[1]; begin += std::ssize(part)) {
    const auto length = static_cast<std::size_t>(std::min(std::ssize(part), head[1] - begin));
    if (is_root) std::memcpy(part.data(), mine.text + begin, length);
    check_mpi(MPI_Bcast(part.data(), static_cast<int>(length), MPI_CHAR, root, comm), "MPI_Bcast");
    same = same && std::memcmp(part.data(), mine.text + begin, length) == 0;
    try {
      if (complete) status.text.append(part.data(), length);
    } catch (const std::bad_alloc&) {
      complete = false;
    }
  }
  return same;
}

}  // namespace

Failure Failure::current() noexcept {
  Failure failure{.exception = std::current_exception()};
  try {
    throw;
  } catch (const Error& error) {
    failure.kind = error.kind();
    failure.text = error.what();
    failure.consequence = dynamic_cast<const PeerGaveUp*>(&error) != nullptr;
  } catch (const std::bad_alloc&) {
    failure.kind = ErrorKind::memory;
    failure.text = "no memory left";
  } catch (const std::exception& error) {
    failure.text = error.what();
  } catch (...) {
    failure.text = "an exception of unknown type";
  }
  return failure;
}

GroupStatus exchange_status(MPI_Comm comm, const Failure& mine, int depth, std::int64_t value) {
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const bool failed = mine.exception != nullptr;
  GroupStatus status;
  if (size == 1 && !failed) return status;

  // A cause goes before its consequences, and a lower rank before a higher one.
  const std::int64_t blame = rank + (mine.consequence ? size : 0);
  std::array<std::int64_t, 5> least{failed ? blame : nobody, failed ? depth : nobody, failed ? 1 : 0, value,
                                    ~value};  // ~ turns the order around
  all_min(comm, least);
  if (least[0] == nobody) {
    status.all_equal = least[3] == ~least[4];
    return status;
  }
  status.depth = static_cast<int>(least[1]);
  const auto root = static_cast<int>(least[0] % size);
  std::array<std::int64_t, 1> alike{broadcast_failure(comm, root, root == rank, mine, status) ? 1 : 0};
  if (least[2] == 1) all_min(comm, alike);
  if (least[2] == 1 && alike[0] == 1) return status;
  try {
    status.text = concat("rank ", root, ": ", status.text);
  } catch (const std::bad_alloc&) {
    // The text without the rank is better than none.
  }
  return status;
}

}  // namespace sar
