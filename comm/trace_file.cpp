// SPDX-License-Identifier: MIT

// At the end of a trace, ranks may be missing, so nothing is collective. Each rank but 0 sends its text
// (MPI_Issend) and waits up to 15 s until rank 0 receives it. Rank 0 takes the ranks in order and waits
// for all of them together up to 5 s. A buffer that MPI may still use after that time is never freed.
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int trace_tag = 32'766;  // above the tags of Communicator::new_tag()
constexpr char head[] = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
constexpr char tail[] = "\n]}\n";

/// A communicator will write the file of SAR_TRACE.
std::atomic<bool> environment_trace_has_owner{false};
/// Its final write failed.
std::atomic<bool> environment_trace_not_written{false};

/// Polls `done` until it returns true or the deadline passes; returns whether it became true.
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

/// Keeps a buffer that MPI may still read or write for the rest of the process.
const std::string& abandon(std::unique_ptr<std::string> text) {
  static auto* const abandoned = new std::vector<std::unique_ptr<std::string>>;
  static std::mutex abandoned_mutex;
  const std::scoped_lock lock(abandoned_mutex);
  return *abandoned->emplace_back(std::move(text));
}

/// Returns the text sent by rank `from`, or nullopt if none arrives before the deadline.
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
  auto text = std::make_unique<std::string>(bytes, ' ');
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Imrecv(text->data(), bytes, MPI_BYTE, &message, &request), "MPI_Imrecv");
  if (completes(request, Clock::now() + trace_patience.rank_0)) return std::move(*text);
  abandon(std::move(text));
  MPI_Request_free(&request);
  return std::nullopt;
}

/// Returns whether rank 0 received the text before the deadline.
bool send_text(MPI_Comm comm, std::unique_ptr<std::string>& text, Clock::time_point deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Issend(text->data(), static_cast<int>(text->size()), MPI_BYTE, 0, trace_tag, comm, &request),
            "MPI_Issend");
  if (completes(request, deadline)) return true;
  MPI_Request_free(&request);
  return false;
}

std::exception_ptr write_alone(int rank, const std::string& path, const std::string& text) noexcept {
  TraceFile file(concat(path, ".rank", rank));
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

}  // namespace

TraceFile::TraceFile(const std::string& path) noexcept {
  attempt([&] {
    file_.emplace(path);
    file_->write(head, sizeof head - 1);
  });
}

void TraceFile::add(const std::string& text) noexcept {
  attempt([&] {
    if (!first_) file_->write(",\n", 2);
    file_->write(text.data(), text.size());
    first_ = false;
  });
}

std::exception_ptr TraceFile::finish() noexcept {
  attempt([&] {
    file_->write(tail, sizeof tail - 1);
    file_->commit();
  });
  return failure_;
}

void TraceFile::attempt(FunctionRef<void()> action) noexcept {
  if (failure_) return;
  try {
    action();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

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

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

const char* environment_trace_file(int size) {
  const char* file = std::getenv("SAR_TRACE");
  const bool wanted = file != nullptr && *file != 0 && (size > 1 || process_number().processes == 1) &&
                      !environment_trace_has_owner;
  return wanted ? file : nullptr;
}

void check_environment_trace(const std::string& path) {
  try {
    check_writable(path);
  } catch (const InputError& error) {
    throw InputError(concat("SAR_TRACE: ", error.what()));
  }
}

void begin_environment_trace(std::int64_t zero) {
  (void)start_trace(zero);  // if a trace of an earlier communicator runs, it continues
  environment_trace_has_owner = true;
}

bool environment_trace_runs() noexcept {
  return environment_trace_has_owner;
}

bool environment_trace_failed() noexcept {
  return environment_trace_not_written;
}

void end_environment_trace(MPI_Comm comm, int rank, int size, const std::string& path) noexcept {
  const std::exception_ptr failure = write_trace(comm, rank, size, path, trace_patience);
  environment_trace_has_owner = false;
  environment_trace_not_written = failure != nullptr;
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "SAR_TRACE: %s\n", error.what());
  }
}

}}  // namespace sar
