// SPDX-License-Identifier: MIT

// One MPI_Iallreduce (minimum) of five numbers: the rank to blame, the smallest depth of a failed rank,
// whether all have failed, and a digest of the call with its complement, which gives the maximum. Ranks
// whose failure is a consequence of another's come last.
//
// After a failure, the rank to blame broadcasts kind and text in parts of 512 bytes, and one more
// reduction tells whether all texts are equal. If digests differ, the ranks compare the entries of their
// calls one after another: two small collective calls for each entry until one differs.
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/status.hpp>
#include <sar/core/random.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();

template <std::size_t n>
void all_min(MPI_Comm comm, std::array<std::int64_t, n>& values) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(n), MPI_INT64_T, MPI_MIN, comm),
            "MPI_Allreduce");
}

/// The same; calls `meanwhile` until the other ranks have arrived.
template <std::size_t n>
void all_min(MPI_Comm comm, std::array<std::int64_t, n>& values, FunctionRef<void()> meanwhile) {
  constexpr int tests_before_yield = 100;  // ranks may share a core
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(
      MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(n), MPI_INT64_T, MPI_MIN, comm, &request),
      "MPI_Iallreduce");
  for (int tests = 0, done = 0;; ++tests) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    meanwhile();
    if (tests >= tests_before_yield) std::this_thread::yield();
  }
}

/// Returns a hash of a call and its depth.
std::uint64_t digest(const CommCall& call, int depth) {
  std::uint64_t hash = hash_start;
  for (const char* text : {call.name, call.unit})
    for (const char* c = text; *c != 0; ++c) hash = with_word(hash, static_cast<std::uint64_t>(*c));
  for (const std::int64_t number :
       {std::int64_t{call.ends}, call.length, std::int64_t{call.root}, std::int64_t{depth}})
    hash = with_word(hash, static_cast<std::uint64_t>(number));
  return hash;
}

/// The same with all that ranks compare.
std::int64_t digest(const CommCall& call, int depth, std::int64_t value) {
  std::uint64_t hash = digest(call, depth);
  for (const CallChain* chain = call.calls; chain != nullptr; chain = chain->outer)
    hash = with_word(hash, static_cast<std::uint64_t>(chain->call.digest()));
  return static_cast<std::int64_t>(with_word(hash, static_cast<std::uint64_t>(value)));
}

/// Returns entry i of the calls, from the outermost call.
CallEntry entry_of(const CallChain* chain, std::size_t i) {
  if (chain == nullptr) return {};
  std::size_t before = 0;
  for (const CallChain* outer = chain->outer; outer != nullptr; outer = outer->outer)
    before += outer->call.num_entries();
  if (i < before) return entry_of(chain->outer, i);
  return i - before < chain->call.num_entries() ? chain->call.entry(i - before) : CallEntry{};
}

/// A call in the messages of compare_calls().
struct CallText {
  std::array<char, 160> text{};
  int depth = 0;
};

/// Returns a description of a call, such as "calls broadcast of 8 bytes from rank 0 in load_dataset" or "ends
/// agree". Allocates nothing; cut if too long.
CallText text_of(const CommCall& call, int depth) {
  CallText result{.depth = depth};
  auto& text = result.text;
  const auto append = [&](const char* format, auto... values) {
    const std::size_t used = std::strlen(text.data());
    std::snprintf(text.data() + used, text.size() - used, format, values...);
  };
  append("%s %s", call.ends ? "ends" : "calls", call.name);
  if (call.length >= 0) append(" of %lld %s", static_cast<long long>(call.length), call.unit);
  if (call.root >= 0) append(" from rank %d", call.root);
  if (*call.caller != 0 && std::strcmp(call.caller, call.name) != 0) append(" in %s", call.caller);
  return result;
}

/// What two ranks have: rank 0 and `rank`, the lowest one that differs from it, or the number of ranks.
template <class T>
struct Pair {
  T first, other;
  std::int64_t rank;
};

/// Compares what the ranks have by its digest. Collective.
template <class T>
Pair<T> compare(MPI_Comm comm, int rank, int size, const T& mine, std::int64_t digest) {
  Pair<T> pair{mine, mine, size};
  std::int64_t of_first = digest;
  check_mpi(MPI_Bcast(&of_first, 1, MPI_INT64_T, 0, comm), "MPI_Bcast");
  std::array<std::int64_t, 1> lowest{digest == of_first ? size : rank};
  all_min(comm, lowest);
  pair.rank = lowest[0];
  return pair;
}

/// Broadcasts what the two ranks have; both ranks exist.
template <class T>
void broadcast(MPI_Comm comm, Pair<T>& pair) {
  check_mpi(MPI_Bcast(&pair.first, sizeof(T), MPI_BYTE, 0, comm), "MPI_Bcast");
  check_mpi(MPI_Bcast(&pair.other, sizeof(T), MPI_BYTE, static_cast<int>(pair.rank), comm), "MPI_Bcast");
}

/// Finds the first call, from the outermost, or argument that differs between ranks, or none. `operation` is
/// the call that the argument belongs to.
Pair<CallEntry> first_difference(MPI_Comm comm, int rank, int size, const CallChain* calls,
                                 CallEntry& operation) {
  for (std::size_t i = 0;; ++i) {
    const CallEntry mine = entry_of(calls, i);
    Pair<CallEntry> entries = compare(comm, rank, size, mine, mine.digest);
    if (entries.rank < size) broadcast(comm, entries);
    if (entries.rank < size || mine.digest == 0) return entries;
    if (mine.is_call) operation = mine;
  }
}

bool is_argument(const CallEntry& entry) {
  return entry.digest != 0 && !entry.is_call;
}

std::string text_of_argument(const Pair<CallEntry>& entries, const CallEntry& operation) {
  const auto& [first, other, rank] = entries;
  const bool same = std::strcmp(first.name.data(), other.name.data()) == 0;
  if (!same)
    return concat(operation.name.data(), " is called with different arguments: ", first.name.data(), " ",
                  first.value.data(), " on rank 0, ", other.name.data(), " ", other.value.data(), " on rank ",
                  rank);
  return concat(operation.name.data(), " is called with a different ", first.name.data(),
                " on different ranks: ", first.value.data(), " on rank 0, ", other.value.data(), " on rank ",
                rank);
}

std::string text_of_calls(const Pair<CallEntry>& entries, const Pair<CallText>& calls) {
  const auto text = [](const CallEntry& entry, const CallText& call) {
    return entry.is_call ? concat("calls ", entry.name.data()) : std::string(call.text.data());
  };
  std::string first = text(entries.first, calls.first), other = text(entries.other, calls.other);
  if (first == other) {
    first += concat(" within ", calls.first.depth, " calls of agree");
    other += concat(" within ", calls.other.depth);
  }
  return concat("the ranks make different calls: rank 0 ", first, ", rank ", calls.rank, " ", other);
}

/// Compares the calls themselves: those with arguments that the ranks are in, then the call of the
/// communicator. If they differ, the status names those of rank 0 and of the first other rank.
void compare_calls(MPI_Comm comm, int rank, int size, const CommCall& call, int depth, GroupStatus& status) {
  CallEntry operation;
  Pair<CallEntry> entries = first_difference(comm, rank, size, call.calls, operation);
  Pair<CallText> calls =
      compare(comm, rank, size, text_of(call, depth), static_cast<std::int64_t>(digest(call, depth)));
  const bool argument = is_argument(entries.first) && is_argument(entries.other) && entries.rank < size;
  const bool differ = calls.rank < size || (entries.rank < size && !argument);
  if (!differ && !argument) return;
  if (entries.rank < size) calls.rank = entries.rank;
  broadcast(comm, calls);
  status.failed = differ;
  status.arguments_differ = !differ;
  status.depth = 1;
  status.kind = argument ? ErrorKind::input : ErrorKind::communication;
  try {
    status.text = argument ? text_of_argument(entries, operation) : text_of_calls(entries, calls);
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
                            std::int64_t value, FunctionRef<void()> meanwhile) {
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
  if (size > 1) all_min(comm, least, meanwhile);  // MPICH 4.0 cannot do it in a session of one process
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

// MPI_Finalize first deletes the attributes of MPI_COMM_SELF, and so calls back. The callback takes part
// in synchronization points of the kept communicator until no rank fails in one. A rank that still makes a
// collective call finds the end of the program there, throws, and later arrives itself. A program with
// sessions only has no such callback: there the last handle of the communicator is the end.

namespace {

std::atomic<bool> first_is_chosen{false};  // process 0 has chosen the communicator to keep

std::mutex end_mutex;  // of the following, until MPI_Finalize
bool calls_at_finalize = false;
MPI_Comm kept = MPI_COMM_NULL;
void (*last_action)(MPI_Comm) noexcept = nullptr;

int act_at_finalize(MPI_Comm, int, void*, void*) {
  if (last_action != nullptr) std::exchange(last_action, nullptr)(MPI_COMM_NULL);
  return MPI_SUCCESS;
}

/// Registers `callback` to run first in MPI_Finalize (MPI 3.1, section 8.7.1); the last registered runs
/// first.
void call_at_finalize(MPI_Comm_delete_attr_function* callback) {
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, nullptr), "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
  check_mpi(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
  calls_at_finalize = true;
}

/// Waits for the other ranks, which arrive here or end the program with an error.
int agree_at_finalize(MPI_Comm comm, int key, void* value, void* state) {
  try {
    wait_for_end(kept);
    act_at_finalize(comm, key, value, state);
  } catch (const std::exception&) {
    // MPI has failed: the other ranks cannot be told.
  }
  MPI_Comm_free(&kept);
  return MPI_SUCCESS;
}

}  // namespace

// Threads of different processes may create their communicators in different orders: process 0 decides which
// is the first.
bool keep_until_finalize(MPI_Comm comm) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const auto [process, processes] = process_number();
  if (size != processes || size == 1) return false;
  int is_first = process == 0 && !first_is_chosen.exchange(true) ? 1 : 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &is_first, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
  if (is_first == 0) return false;
  const std::scoped_lock lock(end_mutex);
  const bool of_session = is_of_session(comm);
  if (!of_session) call_at_finalize(agree_at_finalize);
  kept = comm;
  return !of_session;
}

void at_program_end(MPI_Comm comm, void (*action)(MPI_Comm) noexcept) {
  const std::scoped_lock lock(end_mutex);
  if (!calls_at_finalize && !is_of_session(comm)) call_at_finalize(act_at_finalize);
  last_action = action;
}

bool end_of_session(MPI_Comm comm, bool together) noexcept {
  bool was_kept = false;
  void (*action)(MPI_Comm) noexcept = nullptr;
  {
    const std::scoped_lock lock(end_mutex);
    was_kept = kept == comm;
    if (was_kept) kept = MPI_COMM_NULL;
    action = last_action;
  }
  if (!together) return false;
  try {
    if (was_kept) wait_for_end(comm);
    if (action != nullptr) action(comm);
  } catch (const std::exception&) {
    // MPI has failed: the other ranks cannot be told.
  }
  return true;
}

void wait_for_end(MPI_Comm comm) {
  while (exchange_status(comm, {}, 0, {.name = "the program", .ends = true}).failed) {
  }
}
}}  // namespace sar
