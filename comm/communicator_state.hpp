/// What all handles of a communicator share. For the sources of comm/ only.
#pragma once

#include <sar/comm/comm_stats.hpp>
#include <sar/comm/owned_comm.hpp>
#include <sar/comm/pending_exchange.hpp>
#include <sar/comm/status.hpp>
#include <sar/core/trace.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <string>
#include <thread>
#include <vector>

namespace sar::inline SAR_PRECISION {

struct CommunicatorState {
  OwnedComm owned;
  int rank = 0;
  int size = 1;
  std::size_t max_message_bytes = std::size_t{1} << 30;
  std::vector<char> on_same_node;  // of each rank
  int next_tag = 0;
  std::vector<PendingExchange*> exchanges;
  CommStats stats;
  std::thread::id only_thread;  // that may call MPI; none where MPI leaves the choice to the program
  int depth = 0;                // calls of agree() that this rank is in
  const char* caller = "";      // the function whose agree() this rank is in, the innermost with a name
  GroupStatus status;  // when it is a failure, this rank is leaving the calls of agree() from its depth on
  bool kept_until_finalize = false;
  bool debug = false;  // SAR_DEBUG is set on a rank
  std::string trace;   // the file of a timeline to be written at the end

  CommunicatorState() = default;
  CommunicatorState(const CommunicatorState&) = delete;
  CommunicatorState& operator=(const CommunicatorState&) = delete;
  ~CommunicatorState();

  /// The most elements of `element_bytes` bytes in one message.
  [[nodiscard]] std::size_t max_count(std::size_t element_bytes) const {
    return std::clamp<std::size_t>(max_message_bytes / element_bytes, 1, INT_MAX);
  }

  void count(std::size_t sent, std::size_t received) {
    stats.bytes_sent += sent;
    stats.bytes_received += received;
    TraceScope::add_bytes(sent, received);
  }

  /// Throws unless this rank may call MPI now.
  void check_caller() const;
  /// Throws in a body of agree() that has started an exchange of rows and not finished it. A rank that fails
  /// completes its exchanges before it synchronizes, and needs the other ranks for that: they would wait for
  /// it here.
  void check_exchanges() const;
  /// A synchronization point: at a collective call, or at the end of agree(). Throws the same on all ranks
  /// when one of them comes with a failure or another call. A rank that is leaving agree() does not wait for
  /// the others, which are leaving it, too. Returns whether `value` is the same on all ranks.
  bool synchronize(CommCall call, const Failure& mine = {}, std::int64_t value = 0);
  /// That of a call, after the checks of this rank.
  bool begin_call(const CommCall& call, std::int64_t value = 0);
};

/// Throws CommunicationError unless MPI is initialized and not finalized; `what` needs it.
void require_running_mpi(const char* what);
/// The only thread that may call MPI, or none where MPI leaves the choice to the program. Throws
/// CommunicationError on another one.
std::thread::id only_thread();

/// Adds its life time to the time spent waiting, and to a trace under the name of the function that it is in.
class WaitTimer {
 public:
  explicit WaitTimer(CommStats& stats, const char* call = __builtin_FUNCTION())
      : scope_(call, TraceKind::communication), stats_(stats), start_(Clock::now()) {}
  ~WaitTimer() { stats_.wait_seconds += std::chrono::duration<double>(Clock::now() - start_).count(); }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  TraceScope scope_;
  CommStats& stats_;
  Clock::time_point start_;
};

}  // namespace sar
