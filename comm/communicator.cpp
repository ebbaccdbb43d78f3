#include <sar/comm/communicator.hpp>
#include <sar/comm/exchange.hpp>
#include <sar/comm/mpi_error.hpp>
#include <sar/comm/owned_comm.hpp>
#include <sar/comm/status.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstring>
#include <new>
#include <numeric>
#include <thread>

namespace sar {
namespace {

void require_running_mpi(const char* what) {
  int initialized = 0;
  int finalized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  require<CommunicationError>(
      initialized != 0 && finalized == 0, what, " needs MPI, which is ",
      finalized != 0 ? "finalized already"
                     : "not initialized: call MPI_Init_thread, or create a sar::Environment, first");
}

constexpr const char* wrong_thread =
    "a call from another thread than the one that initialized MPI at MPI_THREAD_FUNNELED: "
    "call from that one, or ask MPI_Init_thread for MPI_THREAD_SERIALIZED";

/// The only thread that may call MPI; no thread where MPI leaves the choice to the program.
std::thread::id only_thread() {
  int level = 0;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  check_thread_level(level);
  if (level >= MPI_THREAD_SERIALIZED) return {};
  int is_main = 0;
  check_mpi(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
  require<CommunicationError>(is_main != 0, wrong_thread);
  return std::this_thread::get_id();
}

}  // namespace

struct Communicator::State {
  OwnedComm owned;
  int rank = 0;
  int size = 1;
  std::size_t max_message_bytes = std::size_t{1} << 30;
  std::vector<char> on_same_node;  // of each rank
  int next_tag = 0;
  std::vector<Exchange*> exchanges;
  CommStats stats;
  std::thread::id only_thread;
  int depth = 0;       // calls of agree() that this rank is in
  GroupStatus status;  // its depth: on the way out of this call of agree() and of those in it; 0: not failed
  std::string trace;   // the file of a timeline to be written at the end

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    int finalized = 0;
    if (owned.comm == MPI_COMM_NULL || MPI_Finalized(&finalized) != MPI_SUCCESS || trace.empty()) return;
    end_environment_trace(finalized != 0 ? MPI_COMM_NULL : owned.comm, rank, size, trace);
  }

  /// Elements of `element_bytes` bytes in one message at most.
  [[nodiscard]] std::size_t max_count(std::size_t element_bytes) const {
    return std::clamp<std::size_t>(max_message_bytes / element_bytes, 1, INT_MAX);
  }

  void count(std::size_t sent, std::size_t received) {
    stats.bytes_sent += sent;
    stats.bytes_received += received;
    TraceScope::add_bytes(sent, received);
  }

  /// Throws unless this rank may call MPI now.
  void check_caller() const {
    require_running_mpi("a collective call");
    require<CommunicationError>(only_thread == std::thread::id() || only_thread == std::this_thread::get_id(),
                                wrong_thread);
  }
  /// Throws in a body of agree() that has started an exchange of rows and not finished it: a rank that fails
  /// completes it before it meets the others, for which it needs them, and they would wait for it here.
  void check_exchanges() const {
    if (depth == 0 || status.depth > 0) return;
    for (const Exchange* exchange : exchanges)
      require<CommunicationError>(
          !exchange->under_way_in_agree(),
          "a collective call in agree() between start() and finish() of an exchange of rows, expected "
          "after finish()");
  }
  /// Meets the other ranks at a collective call, or at the end of agree(). Throws the same on all when a rank
  /// comes with a failure. A rank that is on its way out of agree() does not wait for the others: they are
  /// as well. Returns whether `value` is the same on all ranks.
  bool synchronize(const Failure& mine, std::int64_t value);
};

namespace {

constexpr int all_to_all_tag = 1;
constexpr int first_exchange_tag = 2;
constexpr int exchange_tags = 32'000;  // MPI guarantees tags up to 32767

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

template <class T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::is_same_v<T, std::uint32_t>) return MPI_UINT32_T;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
  if constexpr (std::is_same_v<T, std::uint64_t>) return MPI_UINT64_T;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::sum:
      break;
  }
  return MPI_SUM;
}

std::size_t total_bytes(std::span<const Index> counts, std::size_t element_bytes) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0})) * element_bytes;
}

}  // namespace

Communicator::Communicator(MPI_Comm comm) {
  require_running_mpi("a communicator");
  require<CommunicationError>(comm != MPI_COMM_NULL, "cannot use MPI_COMM_NULL as a communicator");
  int inter = 0;
  check_mpi(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  require<CommunicationError>(inter == 0, "cannot use an inter-communicator: all ranks must be in one group");
  const std::thread::id thread = only_thread();
  OwnedComm copy, node;
  check_mpi(MPI_Comm_dup(comm, &copy.comm), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(copy.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");

  // From here on, what fails on one rank fails on all.
  Failure failure;
  try {
    state_ = std::make_shared<State>();
    check_mpi(MPI_Comm_rank(copy.comm, &state_->rank), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(copy.comm, &state_->size), "MPI_Comm_size");
    state_->on_same_node.reserve(state_->size);
  } catch (...) {
    failure = Failure::current();
  }
  const GroupStatus status = exchange_status(copy.comm, failure, 1, 0);
  if (status.depth > 0) throw_error(status.kind, status.text);
  state_->owned.comm = std::exchange(copy.comm, MPI_COMM_NULL);
  state_->only_thread = thread;

  check_mpi(
      MPI_Comm_split_type(state_->owned.comm, MPI_COMM_TYPE_SHARED, state_->rank, MPI_INFO_NULL, &node.comm),
      "MPI_Comm_split_type");
  int first_of_node = state_->rank;
  check_mpi(MPI_Bcast(&first_of_node, 1, MPI_INT, 0, node.comm), "MPI_Bcast");
  agree([&] {
    for (const int first : all_gather(first_of_node)) state_->on_same_node.push_back(first == first_of_node);
    state_->trace = start_environment_trace(*this);
  });
  state_->stats = {};
}

bool Communicator::on_same_node(int rank) const {
  return state_->on_same_node.at(static_cast<std::size_t>(rank)) != 0;
}

Communicator Communicator::world() {
  return Communicator(MPI_COMM_WORLD);
}
Communicator Communicator::self() {
  return Communicator(MPI_COMM_SELF);
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

std::vector<Exchange*>& Communicator::exchanges() const noexcept {
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

void Communicator::barrier() const {
  synchronize();
  const WaitTimer timer(state_->stats);
  check_mpi(MPI_Barrier(state_->owned.comm), "MPI_Barrier");
}

// The same bits everywhere: MPI requires that all processes receive identical results from MPI_Allreduce, and
// where two ranks combine the same two values in opposite orders, addition, max and min commute bit for bit.
template <class T>
void Communicator::all_reduce(std::span<T> values, ReduceOp op) const {
  synchronize();
  if (state_->size == 1) return;
  const WaitTimer timer(state_->stats);
  const std::size_t step = state_->max_count(sizeof(T));
  for (std::size_t begin = 0; begin < values.size(); begin += step) {
    const std::size_t count = std::min(step, values.size() - begin);
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data() + begin, static_cast<int>(count), mpi_type<T>(),
                            mpi_op(op), state_->owned.comm),
              "MPI_Allreduce");
  }
  state_->count(values.size_bytes(), values.size_bytes());
}
template void Communicator::all_reduce(std::span<float>, ReduceOp) const;
template void Communicator::all_reduce(std::span<double>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::int32_t>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::uint32_t>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::int64_t>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::uint64_t>, ReduceOp) const;

std::vector<Index> Communicator::gather_counts(Index count) const {
  std::vector<Index> counts(state_->size);
  synchronize();
  const WaitTimer timer(state_->stats);
  check_mpi(MPI_Allgather(&count, 1, MPI_INT64_T, counts.data(), 1, MPI_INT64_T, state_->owned.comm),
            "MPI_Allgather");
  return counts;
}

std::vector<Index> Communicator::exchange_counts(std::span<const Index> counts,
                                                 std::size_t num_values) const {
  require<CommunicationError>(counts.size() == static_cast<std::size_t>(state_->size), "all_to_all_v got ",
                              counts.size(), " counts for ", state_->size, " ranks");
  require<CommunicationError>(
      std::all_of(counts.begin(), counts.end(), [](Index count) { return count >= 0; }) &&
          total_bytes(counts, 1) == num_values,
      "all_to_all_v got ", num_values, " values, but counts that sum up to ", total_bytes(counts, 1));
  std::vector<Index> received(counts.size());
  synchronize();
  const WaitTimer timer(state_->stats);
  check_mpi(MPI_Alltoall(counts.data(), 1, MPI_INT64_T, received.data(), 1, MPI_INT64_T, state_->owned.comm),
            "MPI_Alltoall");
  return received;
}

void Communicator::all_gather_bytes(const void* mine, void* all, const std::vector<Index>& counts,
                                    std::size_t element_bytes) const {
  const auto rank = static_cast<std::size_t>(state_->rank);
  const std::size_t my_bytes = total_bytes(std::span(counts).subspan(rank, 1), element_bytes);
  const std::size_t all_bytes = total_bytes(counts, element_bytes);
  auto* out = static_cast<std::byte*>(all);
  if (all_bytes <= state_->max_count(1)) {
    std::vector<int> byte_counts(counts.size());
    std::vector<int> offsets(counts.size());
    for (std::size_t q = 0, offset = 0; q < counts.size(); ++q) {
      const std::size_t bytes = static_cast<std::size_t>(counts[q]) * element_bytes;
      byte_counts[q] = static_cast<int>(bytes);
      offsets[q] = static_cast<int>(offset);
      offset += bytes;
    }
    synchronize();
    const WaitTimer timer(state_->stats);
    check_mpi(MPI_Allgatherv(mine, static_cast<int>(my_bytes), MPI_BYTE, out, byte_counts.data(),
                             offsets.data(), MPI_BYTE, state_->owned.comm),
              "MPI_Allgatherv");
    if (state_->size > 1) state_->count(my_bytes, all_bytes - my_bytes);
    return;
  }
  // Too much for one call, whose offsets are 32-bit numbers: rank after rank, cut by broadcast_bytes.
  for (std::size_t q = 0; q < counts.size(); ++q) {
    const std::size_t bytes = static_cast<std::size_t>(counts[q]) * element_bytes;
    if (q == rank && bytes > 0) std::memcpy(out, mine, bytes);
    broadcast_bytes(out, bytes, static_cast<int>(q));
    out += bytes;
  }
}

void Communicator::broadcast_bytes(void* data, std::size_t bytes, int root) const {
  require<CommunicationError>(root >= 0 && root < state_->size, "broadcast from rank ", root, " of ",
                              state_->size);
  synchronize();
  if (state_->size == 1) return;
  const WaitTimer timer(state_->stats);
  const std::size_t step = state_->max_count(1);
  for (std::size_t begin = 0; begin < bytes; begin += step)
    check_mpi(MPI_Bcast(static_cast<std::byte*>(data) + begin,
                        static_cast<int>(std::min(step, bytes - begin)), MPI_BYTE, root, state_->owned.comm),
              "MPI_Bcast");
  state_->count(root == state_->rank ? bytes : 0, root == state_->rank ? 0 : bytes);
}

std::string Communicator::broadcast(const std::string& text, int root) const {
  return agree_once([&] {
    std::uint64_t length = text.size();
    broadcast(std::span(&length, 1), root);
    std::string result = root == state_->rank ? text : std::string(static_cast<std::size_t>(length), '\0');
    broadcast(std::span(result), root);
    return result;
  });
}

// Pairwise: how a part is cut follows from its length, which both of its ends know.
void Communicator::all_to_all_bytes(const void* out, std::span<const Index> out_counts, void* in,
                                    std::span<const Index> in_counts, std::size_t element_bytes) const {
  const int size = state_->size;
  const auto offsets = [&](std::span<const Index> counts) {
    std::vector<std::size_t> bytes(counts.size() + 1, 0);
    for (std::size_t q = 0; q < counts.size(); ++q)
      bytes[q + 1] = bytes[q] + static_cast<std::size_t>(counts[q]) * element_bytes;
    return bytes;
  };
  const std::vector<std::size_t> out_offset = offsets(out_counts);
  const std::vector<std::size_t> in_offset = offsets(in_counts);
  const auto* from = static_cast<const std::byte*>(out);
  auto* to = static_cast<std::byte*>(in);
  const std::size_t step = state_->max_count(1);
  const auto me = static_cast<std::size_t>(state_->rank);
  std::vector<MPI_Request> requests;
  const auto messages = [step](const std::vector<std::size_t>& offset, std::size_t q) {
    return (offset[q + 1] - offset[q] + step - 1) / step;
  };
  for (std::size_t r = 1; r < out_counts.size(); ++r)
    requests.reserve(messages(in_offset, (me + out_counts.size() - r) % out_counts.size()) +
                     messages(out_offset, (me + r) % out_counts.size()));

  synchronize();
  const WaitTimer timer(state_->stats);
  if (out_offset[me + 1] > out_offset[me])
    std::memcpy(to + in_offset[me], from + out_offset[me], out_offset[me + 1] - out_offset[me]);
  for (int r = 1; r < size; ++r) {
    const int reader = (state_->rank + r) % size;
    const int writer = (state_->rank - r + size) % size;
    const auto q = static_cast<std::size_t>(reader);
    const auto w = static_cast<std::size_t>(writer);
    requests.clear();
    for (std::size_t begin = in_offset[w]; begin < in_offset[w + 1]; begin += step) {
      const auto bytes = static_cast<int>(std::min(step, in_offset[w + 1] - begin));
      check_mpi(MPI_Irecv(to + begin, bytes, MPI_BYTE, writer, all_to_all_tag, state_->owned.comm,
                          &requests.emplace_back()),
                "MPI_Irecv");
    }
    for (std::size_t begin = out_offset[q]; begin < out_offset[q + 1]; begin += step) {
      const auto bytes = static_cast<int>(std::min(step, out_offset[q + 1] - begin));
      check_mpi(MPI_Isend(from + begin, bytes, MPI_BYTE, reader, all_to_all_tag, state_->owned.comm,
                          &requests.emplace_back()),
                "MPI_Isend");
    }
    check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
  }
  state_->count(out_offset.back() - (out_offset[me + 1] - out_offset[me]),
                in_offset.back() - (in_offset[me + 1] - in_offset[me]));
}

bool Communicator::State::synchronize(const Failure& mine, std::int64_t value) {
  if (status.depth == 0) {
    const WaitTimer timer(stats);
    status = exchange_status(owned.comm, mine, depth, value);
    status.depth = std::min(status.depth, depth);
  }
  if (status.depth > 0) throw_error(status.kind, status.text);
  return status.all_equal;
}

void Communicator::synchronize() const {
  state_->check_caller();
  state_->check_exchanges();
  if (state_->depth > 0) state_->synchronize({}, 0);
}

bool Communicator::all_equal(std::int64_t value) const {
  state_->check_caller();
  state_->check_exchanges();
  return state_->synchronize({}, value);
}

bool Communicator::in_agreement() const noexcept {
  return state_->depth > 0;
}

void Communicator::run_agreed(FunctionRef<void()> body) const {
  struct Level {
    State& state;
    explicit Level(State& inside) : state(inside) { ++state.depth; }
    ~Level() {
      if (state.status.depth == state.depth) state.status = {};
      --state.depth;
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
  };
  state_->check_caller();
  state_->check_exchanges();
  const Level level(*state_);
  Failure failure;
  try {
    body();
  } catch (...) {
    failure = Failure::current();
    for (Exchange* exchange : state_->exchanges)
      if (exchange->under_way_in_agree()) exchange->drain();
  }
  state_->synchronize(failure, 0);
}

}  // namespace sar
