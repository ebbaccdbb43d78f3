// SPDX-License-Identifier: MIT

// MPI_Finalize first deletes the attributes of MPI_COMM_SELF, and so calls back. The callback takes part
// in synchronization points of the kept communicator until no rank fails in one. A rank that still makes a
// collective call finds the end of the program there, throws, and later arrives itself. A program with
// sessions only has no such callback: there the last handle of the communicator is the end.
#include <sar/comm/mpi_error.hpp>
#include <sar/comm/mpi_session.hpp>
#include <sar/comm/program_end.hpp>
#include <sar/comm/status.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
