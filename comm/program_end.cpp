// SPDX-License-Identifier: MIT

// MPI_Finalize first deletes the attributes of MPI_COMM_SELF, and so calls back. The callback takes part
// in synchronization points of the kept communicator until no rank fails in one. A rank that still makes a
// collective call finds the end of the program there, throws, and later arrives itself.
#include <sar/comm/mpi_error.hpp>
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
bool kept_one = false;
MPI_Comm kept = MPI_COMM_NULL;
void (*last_action)() noexcept = nullptr;

int act_at_finalize(MPI_Comm, int, void*, void*) {
  if (last_action != nullptr) std::exchange(last_action, nullptr)();
  return MPI_SUCCESS;
}

/// Registers `callback` to run first in MPI_Finalize (MPI 3.1, section 8.7.1); the last registered runs
/// first.
void call_at_finalize(MPI_Comm_delete_attr_function* callback) {
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, nullptr), "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
  check_mpi(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
}

/// Waits until all ranks have arrived: ranks that still make calls throw, and then arrive here or end the
/// program with an error.
int agree_at_finalize(MPI_Comm comm, int key, void* value, void* state) {
  try {
    while (exchange_status(kept, {}, 0, {.name = "the program", .ends = true}).failed) {
    }
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
  int processes = 0;
  int process = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &processes), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &process), "MPI_Comm_rank");
  if (size != processes || size == 1) return false;
  int is_first = process == 0 && !first_is_chosen.exchange(true) ? 1 : 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &is_first, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
  if (is_first == 0) return false;
  const std::scoped_lock lock(end_mutex);
  call_at_finalize(agree_at_finalize);
  kept = comm;
  kept_one = true;
  return true;
}

void at_program_end(void (*action)() noexcept) {
  const std::scoped_lock lock(end_mutex);
  if (last_action != nullptr) return;
  if (!kept_one) call_at_finalize(act_at_finalize);
  last_action = action;
}

}}  // namespace sar
