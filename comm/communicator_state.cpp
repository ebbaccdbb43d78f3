// SPDX-License-Identifier: MIT
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/error.hpp>

#include <exception>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr const char* wrong_thread =
    "a call from another thread than the one that initialized MPI at MPI_THREAD_FUNNELED: "
    "call from that one, or ask MPI_Init_thread for MPI_THREAD_SERIALIZED";

}  // namespace

std::thread::id only_thread(MPI_Comm comm) {
  if (is_of_session(comm)) return {};
  int level = 0;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  check_thread_level(level);
  if (level >= MPI_THREAD_SERIALIZED) return {};
  int is_main = 0;
  check_mpi(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
  require<CommunicationError>(is_main != 0, wrong_thread);
  return std::this_thread::get_id();
}

CommunicatorState::~CommunicatorState() {
  if (owned.comm == MPI_COMM_NULL) return;
  if (!trace.empty() && !is_fork())
    end_environment_trace(mpi_runs() ? owned.comm : MPI_COMM_NULL, rank, size, trace);
  // An exception of this rank alone: the other ranks may wait for it elsewhere.
  const bool leaves_alone = std::uncaught_exceptions() > 0 && failures == 0;
  if (kept_until_finalize ||
      (mpi_runs() && is_of_session(owned.comm) && !end_of_session(owned.comm, !leaves_alone)))
    owned.comm = MPI_COMM_NULL;
}

void CommunicatorState::check_caller() const {
  require_running_mpi("a collective call", is_of_session(owned.comm));
  require<CommunicationError>(only_thread == std::thread::id() || only_thread == std::this_thread::get_id(),
                              wrong_thread);
}

void CommunicatorState::advance_exchanges() noexcept {
  for (PendingExchange* exchange : exchanges) {
    try {
      exchange->advance_in_wait();
    } catch (...) {
      exchange->fail();
    }
  }
}

// After a failure at this depth or an outer one, the status stays set until agree() of that depth ends: inner
// calls throw again without communication.
bool CommunicatorState::synchronize(CommCall call, const Failure& mine, std::int64_t value) {
  if (!status.failed) {
    const WaitTimer timer(stats);
    call.caller = caller;
    call.calls = calls;
    status = exchange_status(owned.comm, mine, depth, call, value, [this] { advance_exchanges(); });
    status.depth = std::min(status.depth, depth);
    if (status.failed) ++failures;
  }
  if (status.arguments_differ) {
    const GroupStatus difference = std::exchange(status, {});
    throw_error(difference.kind, difference.text);
  }
  if (!status.failed) return status.all_equal;
  if (depth > 0) throw_error(status.kind, status.text);
  const GroupStatus failure = std::exchange(status, {});  // there is no agree() to leave
  throw_error(failure.kind, failure.text);
}

bool CommunicatorState::begin_call(const CommCall& call, std::int64_t value, bool recorded) {
  check_caller();
  if (size > 1 && pass != nullptr && !recorded) pass->end_record();
  return synchronize(call, {}, value);
}

}}  // namespace sar
