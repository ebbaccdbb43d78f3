// SPDX-License-Identifier: MIT

/// The state that all handles of a communicator share. For the sources of comm/ only.
#pragma once

#include <sar/comm/comm_stats.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/pending_exchange.hpp>
#include <sar/comm/status.hpp>
#include <sar/config.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <climits>
#include <string>
#include <thread>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The state of a communicator on one rank.
struct CommunicatorState : NonCopyable {
  OwnedComm owned;
  int rank = 0;
  int size = 1;
  std::size_t max_message_bytes = std::size_t{1} << 30;
  std::vector<char> on_same_node;  // one per rank
  int next_tag = 0;
  std::vector<PendingExchange*> exchanges;
  CommStats stats;
  std::thread::id only_thread;  // the only thread that may call MPI; none if MPI allows any thread
  int depth = 0;                // number of nested agree() calls this rank is in
  const char* caller = "";      // the innermost named function whose agree() this rank is in
  RunningPass* pass = nullptr;  // the running pass
  std::size_t failures = 0;     // number of failures that the ranks agreed on
  GroupStatus status;           // if failed, this rank is leaving the agree() calls from its depth on
  // The calls that this rank is in, which all ranks compare.
  const CallChain* calls = nullptr;
  bool kept_until_finalize = false;
  bool debug = false;  // SAR_DEBUG is set on any rank
  std::string trace;   // the trace file to write at the end

  ~CommunicatorState();

  /// Returns the maximum number of elements of `element_bytes` bytes in one message.
  [[nodiscard]] std::size_t max_count(std::size_t element_bytes) const {
    return std::clamp<std::size_t>(max_message_bytes / element_bytes, 1, INT_MAX);
  }

  void count(std::size_t sent, std::size_t received) {
    stats.bytes_sent += sent;
    stats.bytes_received += received;
    TraceScope::add_bytes(sent, received);
  }

  /// Throws CommunicationError unless this rank may call MPI now.
  void check_caller() const;
  /// Advances the exchanges in flight. One that fails is given up; the next wait for it throws.
  void advance_exchanges() noexcept;
  /// A synchronization point: at a collective call, or at the end of agree(). Throws the same on all ranks if
  /// one of them arrives with a failure or another call. A rank that is leaving agree() does not wait for the
  /// others, which are leaving it, too. Returns whether `value` is the same on all ranks. Advances exchanges
  /// while it waits: a failing rank completes its own before it arrives.
  bool synchronize(CommCall call, const Failure& mine = {}, std::int64_t value = 0);
  /// The synchronization point of a call, after the local checks. A call that is not `recorded` ends the
  /// record of `pass`.
  bool begin_call(const CommCall& call, std::int64_t value = 0, bool recorded = false);
};

/// Returns the only thread that may call MPI, or none if MPI allows any thread. Throws CommunicationError if
/// called from another thread. A session does not tell it for its communicators: none.
std::thread::id only_thread(MPI_Comm comm);

/// Adds its lifetime to the waiting time, and to the trace under the name of the calling function.
class WaitTimer : NonCopyable {
 public:
  explicit WaitTimer(CommStats& stats, const char* call = __builtin_FUNCTION())
      : scope_(call, TraceKind::communication), stats_(stats), start_(Clock::now()) {}
  ~WaitTimer() { stats_.wait_seconds += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  TraceScope scope_;
  CommStats& stats_;
  Clock::time_point start_;
};

}}  // namespace sar
