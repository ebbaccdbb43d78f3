// SPDX-License-Identifier: MIT
#include <sar/bindings/c/status.hpp>
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/environment.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/core/memory/memory.hpp>

#include <mutex>

using namespace sar;
using namespace sar::c_interface;

namespace {

/// State left by sar_init() and sar_set_num_threads(). It lives until the process ends or sar_finalize() is
/// called.
struct ProcessState {
  std::mutex mutex;
  std::unique_ptr<Environment> environment;
  std::unique_ptr<ThreadLimit> threads;
};

ProcessState& process_state() {
  static auto* const state = new ProcessState;
  return *state;
}

/// Creates the handle of an MPI communicator. Communicator throws if MPI is not running.
template <class Get>
int make_comm(sar_comm* comm, const Get& get) {
  return call([&] {
    const Refusal refusal;
    const MPI_Comm given = get();
#ifdef OPEN_MPI
    require<CommunicationError>(given != nullptr, "there is no such communicator");
#endif
    const Communicator made(given);
    made.agree(
        [&] {
          refusal.check();
          require_pointer(comm, "comm");
        },
        "sar_comm_create");
    *comm = static_cast<sar_comm>(new_handle(std::make_shared<CommObject>(made)));
  });
}

}  // namespace

const char* sar_version(void) {
  return SAR_VERSION;
}

int32_t sar_precision(void) {
  return sizeof(real) == sizeof(double) ? SAR_FLOAT64 : SAR_FLOAT32;
}

int sar_init(void) {
  return call([&] {
    ProcessState& state = process_state();
    const std::lock_guard lock(state.mutex);
    if (state.environment == nullptr) state.environment = std::make_unique<Environment>();
  });
}

int sar_finalize(void) {
  return call([&] {
    ProcessState& state = process_state();
    const std::lock_guard lock(state.mutex);
    state.environment.reset();
  });
}

int sar_set_num_threads(int32_t threads) {
  return call([&] {
    require<InputError>(threads >= 0, "the number of threads is ", threads, ", expected 0 or more");
    ProcessState& state = process_state();
    const std::lock_guard lock(state.mutex);
    state.threads.reset();
    if (threads > 0) state.threads = std::make_unique<ThreadLimit>(threads);
  });
}

int sar_comm_create(MPI_Comm mpi_comm, sar_comm* comm) {
  return make_comm(comm, [&] { return mpi_comm; });
}

int sar_comm_create_f(int32_t fortran_comm, sar_comm* comm) {
  return make_comm(comm, [&] {
    require_running_mpi("a communicator", is_of_session_f(fortran_comm));
    return MPI_Comm_f2c(static_cast<MPI_Fint>(fortran_comm));
  });
}

int sar_comm_world(sar_comm* comm) {
  return make_comm(comm, [] { return MPI_COMM_WORLD; });
}

int sar_comm_rank(sar_comm comm, int32_t* rank) {
  return give(rank, "rank", [&] { return object<CommObject>(comm, "comm")->comm.rank(); });
}

int sar_comm_size(sar_comm comm, int32_t* size) {
  return give(size, "size", [&] { return object<CommObject>(comm, "comm")->comm.size(); });
}

int sar_comm_default_num_threads(sar_comm comm, int32_t* threads) {
  return collective_call("sar_comm_default_num_threads", {{comm, "comm"}}, [&](const Communicator& c) {
    object<CommObject>(comm, "comm");
    require_pointer(threads, "threads");
    *threads = default_num_threads(c);
  });
}

int sar_comm_free(sar_comm comm) {
  return free_object<CommObject>(comm, "comm");
}

int sar_trace_start(sar_comm comm, const char* path, sar_trace* trace) {
  return make_from_path(
      "sar_trace_start", comm, path, trace,
      [](const Communicator& c, const std::string& to) { return std::make_shared<TraceObject>(c, to); });
}

int sar_trace_write(sar_trace trace) {
  bool all_have_it = false;
  const int status = collective_call("sar_trace_write", {{trace, "trace"}}, [&](const Communicator& c) {
    const auto found = object<TraceObject>(trace, "trace");
    c.require_equal(CollectiveCall("sar_trace_write"));
    all_have_it = true;
    found->trace.write();
  });
  if (all_have_it) forget_handle(trace);
  return status;
}

int sar_memory_current(int64_t* bytes) {
  return give(bytes, "bytes", live_bytes);
}

int sar_memory_peak(int64_t* bytes) {
  return give(bytes, "bytes", peak_bytes);
}

int sar_memory_reset_peak(void) {
  return call([] { reset_peak_bytes(); });
}

int sar_memory_release(void) {
  return call([] { release_cached_memory(); });
}
