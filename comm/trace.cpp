#include <sar/comm/mpi_error.hpp>
#include <sar/comm/trace.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/file.hpp>
#include <sar/core/trace_events.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sar {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int trace_tag = 32'766;  // beyond those of Communicator::new_tag()
constexpr char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
constexpr char tail[] = "\n]}\n";

/// Whether `done` comes to hold before the deadline.
template <class Done>
bool comes(Clock::time_point deadline, const Done& done) {
  while (!done()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

bool completes(MPI_Request& request, Clock::time_point deadline) {
  return comes(deadline, [&] {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  });
}

/// Keeps what MPI may still read or write, as long as the process lives.
const std::string& abandon(std::unique_ptr<std::string> text) {
  static auto* const abandoned = new std::vector<std::unique_ptr<std::string>>;
  return *abandoned->emplace_back(std::move(text));
}

/// What rank `from` sends, or nothing when it does not come before the deadline.
std::optional<std::string> receive_text(MPI_Comm comm, int from, Clock::time_point deadline) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  const bool came = comes(deadline, [&] {
    int found = 0;
    check_mpi(MPI_Improbe(from, trace_tag, comm, &found, &message, &status), "MPI_Improbe");
    return found != 0;
  });
  if (!came) return std::nullopt;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  auto text = std::make_unique<std::string>(static_cast<std::size_t>(bytes), ' ');
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Imrecv(text->data(), bytes, MPI_BYTE, &message, &request), "MPI_Imrecv");
  if (completes(request, Clock::now() + trace_patience.rank_0)) return std::move(*text);
  abandon(std::move(text));
  MPI_Request_free(&request);
  return std::nullopt;
}

/// Whether rank 0 takes the text before the deadline.
bool send_text(MPI_Comm comm, std::unique_ptr<std::string>& text, Clock::time_point deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Issend(text->data(), static_cast<int>(text->size()), MPI_BYTE, 0, trace_tag, comm, &request),
            "MPI_Issend");
  if (completes(request, deadline)) return true;
  MPI_Request_free(&request);
  return false;
}

/// The same file, whatever the directory that the program works in when it is written.
std::string from_here(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

std::string name_of_rank(const std::string& path, int rank) {
  return concat(path, ".rank", rank);
}

/// The file of one rank, or of all of them: a failure is kept, what follows is not written.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path) noexcept {
    attempt([&] {
      file_.emplace(path);
      file_->write(head, sizeof head - 1);
    });
  }
  void add(const std::string& text) noexcept {
    attempt([&] {
      if (!first_) file_->write(",\n", 2);
      file_->write(text.data(), text.size());
      first_ = false;
    });
  }
  std::exception_ptr finish() noexcept {
    attempt([&] {
      file_->write(tail, sizeof tail - 1);
      file_->commit();
    });
    return failure_;
  }

 private:
  template <class Action>
  void attempt(const Action& action) noexcept {
    if (failure_) return;
    try {
      action();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::optional<TemporaryFile> file_;
  bool first_ = true;
  std::exception_ptr failure_;
};

std::exception_ptr write_alone(int rank, const std::string& path, const std::string& text) noexcept {
  TraceFile file(name_of_rank(path, rank));
  file.add(text);
  return file.finish();
}

std::exception_ptr write_all(MPI_Comm comm, int size, const std::string& path, Clock::duration patience) {
  TraceFile file(path);
  file.add(trace_text(0));
  const Clock::time_point deadline = Clock::now() + patience;
  for (int q = 1; q < size; ++q)
    if (const auto text = receive_text(comm, q, deadline)) file.add(*text);
  return file.finish();
}

/// A communicator has SAR_TRACE's file to write.
std::atomic<bool> environment_trace_has_owner{false};

}  // namespace

std::exception_ptr write_trace(MPI_Comm comm, int rank, int size, const std::string& path,
                               const TracePatience& patience) noexcept {
  try {
    if (comm == MPI_COMM_NULL) return write_alone(rank, path, trace_text(rank));
    if (rank == 0) return write_all(comm, size, path, patience.rank_0);
    auto text = std::make_unique<std::string>(trace_text(rank));
    if (send_text(comm, text, Clock::now() + patience.others)) return nullptr;
    return write_alone(rank, path, abandon(std::move(text)));
  } catch (...) {
    return std::current_exception();
  }
}

std::int64_t common_zero(const Communicator& comm) {
  comm.barrier();
  const std::vector<std::int64_t> now = comm.all_gather(steady_nanoseconds());
  int first_of_node = 0;
  while (!comm.on_same_node(first_of_node)) ++first_of_node;
  return now[first_of_node];
}

std::string start_environment_trace(const Communicator& comm) {
  int processes = 1;
  int number = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &processes), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &number), "MPI_Comm_rank");
  const char* file = std::getenv("SAR_TRACE");
  const bool wish =
      file != nullptr && *file != 0 && (comm.size() > 1 || processes == 1) && !environment_trace_has_owner;
  if (comm.all_reduce(wish ? 1 : 0, ReduceOp::min) == 0) return {};

  comm.broadcast(std::span(&number, 1), 0);
  std::string path = file;
  if (number > 0) path += concat(".group", number);
  comm.agree([&] {
    if (comm.rank() != 0) return;
    try {
      check_writable(path);
    } catch (const InputError& error) {
      throw InputError(concat("SAR_TRACE: ", error.what()));
    }
  });
  path = from_here(path);
  const std::int64_t zero = common_zero(comm);
  (void)start_trace(zero);  // an earlier communicator's goes on
  environment_trace_has_owner = true;
  return path;
}

void end_environment_trace(MPI_Comm comm, int rank, int size, const std::string& path) noexcept {
  (void)write_trace(comm, rank, size, path, trace_patience);
  environment_trace_has_owner = false;
}

Trace::Trace(const Communicator& comm, std::string path) : comm_(comm), path_(std::move(path)) {
  try {
    comm.agree([&] {
      require<InputError>(!tracing(), path_, ": another trace is running, expected one at a time",
                          environment_trace_has_owner ? " (SAR_TRACE is set)" : "");
      if (comm.rank() == 0) check_writable(path_);
      path_ = from_here(path_);
      running_ = start_trace(common_zero(comm));
    });
  } catch (...) {
    if (running_) stop_trace();
    throw;
  }
}

Trace::~Trace() {
  if (!running_) return;
  stop_trace();
  int finalized = 0;
  MPI_Finalized(&finalized);
  (void)write_trace(finalized != 0 ? MPI_COMM_NULL : comm_.handle(), comm_.rank(), comm_.size(), path_,
                    trace_patience);
}

void Trace::write() {
  comm_.agree([&] { require<InputError>(running_, path_, ": this trace was written already"); });
  running_ = false;
  stop_trace();
  comm_.agree([&] {
    const std::string text = trace_text(comm_.rank());
    std::optional<TraceFile> file;
    if (comm_.rank() == 0) file.emplace(path_).add(text);
    for (int q = 1; q < comm_.size(); ++q) {  // rank 0 holds one rank's text at a time
      const std::size_t length = q == comm_.rank() ? text.size() : 0;
      std::vector<Index> counts(comm_.size(), 0);
      counts[0] = static_cast<Index>(length);
      const auto received = comm_.all_to_all_v(std::span(text).first(length), counts).values;
      if (file) file->add(std::string(received.begin(), received.end()));
    }
    if (!file) return;
    if (const std::exception_ptr failure = file->finish()) std::rethrow_exception(failure);
  });
}

}  // namespace sar
