#include <sar/comm/mpi_error.hpp>
#include <sar/comm/status.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();

template <std::size_t n>
void all_min(MPI_Comm comm, std::array<std::int64_t, n>& values) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(n), MPI_INT64_T, MPI_MIN, comm),
            "MPI_Allreduce");
}

/// Returns a hash of a call, its depth and its value.
std::int64_t digest(const CommCall& call, int depth, std::int64_t value) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (const char* text : {call.name, call.unit})
    for (const char* c = text; *c != 0; ++c) take(static_cast<unsigned char>(*c));
  for (const std::int64_t number : {std::int64_t{call.ends}, call.length, std::int64_t{call.root},
                                    std::int64_t{depth}, value})
    take(static_cast<std::uint64_t>(number));
  return static_cast<std::int64_t>(hash);
}

using CallText = std::array<char, 160>;

/// Returns a description of a call, such as "calls broadcast of 8 bytes from rank 0 in load_dataset" or "ends
/// agree". Allocates nothing; cut if too long.
CallText text_of(const CommCall& call) {
  CallText text{};
  const auto append = [&](const char* format, auto... values) {
    const std::size_t used = std::strlen(text.data());
    std::snprintf(text.data() + used, text.size() - used, format, values...);
  };
  append("%s %s", call.ends ? "ends" : "calls", call.name);
  if (call.length >= 0) append(" of %lld %s", static_cast<long long>(call.length), call.unit);
  if (call.root >= 0) append(" from rank %d", call.root);
  if (*call.caller != 0 && std::strcmp(call.caller, call.name) != 0) append(" in %s", call.caller);
  return text;
}

/// Compares the calls themselves. If they differ, the status names the call of rank 0 and the first other
/// one.
void compare_calls(MPI_Comm comm, int rank, int size, const CommCall& call, int depth, GroupStatus& status) {
  const std::int64_t mine = digest(call, depth, 0);
  std::int64_t first = mine;
  check_mpi(MPI_Bcast(&first, 1, MPI_INT64_T, 0, comm), "MPI_Bcast");
  std::array<std::int64_t, 1> other{mine == first ? size : rank};
  all_min(comm, other);
  if (other[0] == size) return;
  CallText of_first = text_of(call), of_other = of_first;
  const auto length = static_cast<int>(of_first.size());
  check_mpi(MPI_Bcast(of_first.data(), length, MPI_CHAR, 0, comm), "MPI_Bcast");
  check_mpi(MPI_Bcast(of_other.data(), length, MPI_CHAR, static_cast<int>(other[0]), comm), "MPI_Bcast");
  status.failed = true;
  status.depth = 1;
  status.kind = ErrorKind::communication;
  try {
    status.text = concat("the ranks make different calls: rank 0 ", of_first.data(), ", rank ", other[0],
                         " ", of_other.data());
  } catch (const std::bad_alloc&) {
    // An error without a text is better than none.
  }
}

/// Broadcasts kind and text of the failure of rank `root`. Returns whether this rank failed with the same.
/// The text goes through a fixed buffer, so that a rank without memory can take part.
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

GroupStatus exchange_status(MPI_Comm comm, const Failure& mine, int depth, const CommCall& call,
                            std::int64_t value) {
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const bool failed = mine.exception != nullptr;
  GroupStatus status;
  if (size == 1 && !failed) return status;

  // Causes come before their consequences, lower ranks before higher ones.
  const std::int64_t blame = rank + (mine.consequence ? size : 0);
  const std::int64_t all_of_it = digest(call, depth, value);
  std::array<std::int64_t, 5> least{failed ? blame : nobody, failed ? depth : nobody, failed ? 1 : 0,
                                    all_of_it, ~all_of_it};  // min(~x) = ~max(x)
  all_min(comm, least);
  if (least[0] == nobody) {
    status.all_equal = least[3] == ~least[4];
    if (!status.all_equal) compare_calls(comm, rank, size, call, depth, status);
    return status;
  }
  status.failed = true;
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

}}  // namespace sar
