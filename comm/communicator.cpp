// SPDX-License-Identifier: MIT

// The constructor duplicates the communicator, exchanges the first status, and finds the ranks of its
// node. Then the ranks agree on the lowest instruction set, on a trace and on SAR_DEBUG. Tags of exchanges
// go round from 2 to 32,001; 1 is the tag of all_to_all_v.
#include <sar/comm/communicator.hpp>
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/pending_exchange.hpp>
#include <sar/comm/status.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/error.hpp>
#include <sar/core/isa/instruction_set.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/trace/trace.hpp>

#include <cstdlib>
#include <cstring>

#ifndef SAR_TRACE_SUFFIX
#define SAR_TRACE_SUFFIX ""
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr int first_exchange_tag = 2;  // 1: all_to_all_v
constexpr int exchange_tags = 32'000;  // MPI guarantees tags up to 32767

/// Starts the trace of SAR_TRACE, if set, with the first communicator. Returns the file that this
/// communicator writes at its end, or an empty string. Collective.
std::string start_environment_trace(const Communicator& comm) {
  const char* file = environment_trace_file(comm.size());
  if (comm.all_reduce(file != nullptr ? 1 : 0, ReduceOp::min) == 0) return {};
  int group = process_number().process;
  comm.broadcast(std::span(&group, 1), 0);
  std::string path = concat(file, SAR_TRACE_SUFFIX);
  if (group > 0) path = concat(path, ".group", group);
  comm.agree([&] {
    if (comm.rank() == 0) check_environment_trace(path);
  });
  path = absolute_path(path);
  begin_environment_trace(comm.common_time());
  return path;
}

/// While alive, MPI returns the errors of the host's communicator.
class ReturnedErrors : NonCopyable {
 public:
  explicit ReturnedErrors(MPI_Comm comm) : comm_(comm) {
    check_mpi(MPI_Comm_get_errhandler(comm, &of_host_), "MPI_Comm_get_errhandler");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~ReturnedErrors() {
    MPI_Comm_set_errhandler(comm_, of_host_);
    MPI_Errhandler_free(&of_host_);
  }

 private:
  MPI_Comm comm_;
  MPI_Errhandler of_host_ = MPI_ERRHANDLER_NULL;
};

}  // namespace

Communicator::Communicator(MPI_Comm comm) {
  require_running_mpi("a communicator", is_of_session(comm));
  require<CommunicationError>(comm != MPI_COMM_NULL, "cannot use MPI_COMM_NULL as a communicator");
  const std::thread::id thread = only_thread(comm);
  OwnedComm copy, node;
  {
    const ReturnedErrors returned(comm);
    int inter = 0;
    check_mpi(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
    require<CommunicationError>(inter == 0,
                                "cannot use an inter-communicator: all ranks must be in one group");
    check_mpi(MPI_Comm_dup(comm, &copy.comm), "MPI_Comm_dup");
  }
  check_mpi(MPI_Comm_set_errhandler(copy.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");

  // From here on, a failure on one rank is a failure on all.
  Failure failure;
  try {
    state_ = std::make_shared<CommunicatorState>();
    check_mpi(MPI_Comm_rank(copy.comm, &state_->rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(copy.comm, &state_->size), "MPI_Comm_size");
    state_->on_same_node.reserve(state_->size);
  } catch (...) {
    failure = Failure::current();
  }
  const GroupStatus status = exchange_status(copy.comm, failure, 1, {.name = "Communicator"});
  if (status.failed) throw_error(status.kind, status.text);
  state_->owned.comm = std::exchange(copy.comm, MPI_COMM_NULL);
  state_->only_thread = thread;

  check_mpi(
      MPI_Comm_split_type(state_->owned.comm, MPI_COMM_TYPE_SHARED, state_->rank, MPI_INFO_NULL, &node.comm),
      "MPI_Comm_split_type");
  // Identify a node by the rank, in this communicator, of its first process.
  int first_of_node = state_->rank;
  check_mpi(MPI_Bcast(&first_of_node, 1, MPI_INT, 0, node.comm), "MPI_Bcast");
  agree([&] {
    const auto mine = static_cast<int>(instruction_set());
    lower_instruction_set(static_cast<InstructionSet>(all_reduce(mine, ReduceOp::min)));
    for (const int first : all_gather(first_of_node)) state_->on_same_node.push_back(first == first_of_node);
    state_->trace = start_environment_trace(*this);
    const char* debug = std::getenv("SAR_DEBUG");
    const bool is_set = debug != nullptr && *debug != 0 && std::strcmp(debug, "0") != 0;
    state_->debug = all_reduce(is_set ? 1 : 0, ReduceOp::max) == 1;
    synchronize("Communicator");
    state_->kept_until_finalize = keep_until_finalize(state_->owned.comm);
  });
  state_->stats = {};
}

bool Communicator::on_same_node(int rank) const {
  return state_->on_same_node.at(rank) != 0;
}

int Communicator::rank() const noexcept {
  return state_->rank;
}
int Communicator::size() const noexcept {
  return state_->size;
}
MPI_Comm Communicator::handle() const noexcept {
  return state_->owned.comm;
}

std::size_t Communicator::max_collective_size() const noexcept {
  return state_->max_message_bytes;
}

void Communicator::set_max_collective_size(std::size_t bytes) const {
  require<CommunicationError>(bytes > 0, "the largest message must have at least 1 byte");
  state_->max_message_bytes = bytes;
}

int Communicator::new_tag() const noexcept {
  const int tag = first_exchange_tag + state_->next_tag;
  state_->next_tag = (state_->next_tag + 1) % exchange_tags;
  return tag;
}

std::vector<PendingExchange*>& Communicator::exchanges() const noexcept {
  return state_->exchanges;
}

CommStats Communicator::stats() const noexcept {
  return state_->stats;
}

void Communicator::add_to_stats(const CommStats& more) const noexcept {
  state_->stats.bytes_sent += more.bytes_sent;
  state_->stats.bytes_received += more.bytes_received;
  state_->stats.wait_seconds += more.wait_seconds;
}

std::int64_t Communicator::common_time() const {
  barrier();
  const std::vector<std::int64_t> now = all_gather(steady_nanoseconds());
  int first_of_node = 0;
  while (!on_same_node(first_of_node)) ++first_of_node;
  return now[first_of_node];
}

void Communicator::synchronize(const char* call) const {
  state_->begin_call({.name = call});
}

bool Communicator::all_equal(std::int64_t value, const char* call) const {
  return state_->begin_call({.name = call}, value);
}

void Communicator::require_equal(const CollectiveCall& call) const {
  if (state_->pass != nullptr && state_->pass->replays()) return;
  struct Entered {
    CommunicatorState& state;
    CallChain calls;
    ~Entered() { state.calls = calls.outer; }
  };
  const Entered entered{*state_, {call, state_->calls}};
  state_->calls = &entered.calls;
  state_->begin_call({.name = call.operation()}, 0, true);
}

CallScope::CallScope(const Communicator& comm, CollectiveCall call) noexcept
    : state_(comm.state_), call_(std::move(call)), calls_{call_, state_->calls} {
  state_->calls = &calls_;
}

CallScope::~CallScope() {
  state_->calls = calls_.outer;
}

bool Communicator::debug() const noexcept {
  return state_->debug;
}

int Communicator::agree_depth() const noexcept {
  return state_->depth;
}

// Runs `body` one level deeper and synchronizes at the end. After a failure, first completes the exchanges
// that the body has begun, because their peers may be waiting for this rank. The transaction ends after the
// synchronization, and so restores state on all ranks or on none.
void Communicator::run_agreed(FunctionRef<bool()> body, const char* caller) const {
  // One nested call of agree(); its end clears a failure that all ranks have reported at this depth.
  struct Level {
    CommunicatorState& state;
    const char* outer;
    Level(CommunicatorState& inside, const char* name) : state(inside), outer(inside.caller) {
      ++state.depth;
      if (std::strcmp(name, "operator()") != 0) state.caller = name;  // not a lambda's, which says nothing
    }
    ~Level() {
      if (state.status.failed && state.status.depth == state.depth) state.status = {};
      state.caller = outer;
      --state.depth;
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
  };
  if (state_->depth > 0 && state_->pass != nullptr && state_->pass->replays()) return (void)body();
  state_->check_caller();
  const Level level(*state_, caller);
  const Transaction transaction;
  Failure failure;
  try {
    if (body()) return;
  } catch (...) {
    failure = Failure::current();
    for (PendingExchange* exchange : state_->exchanges)
      if (exchange->under_way_within(state_->depth)) exchange->drain();
  }
  state_->synchronize({.name = "agree", .ends = true}, failure);
}

}}  // namespace sar
