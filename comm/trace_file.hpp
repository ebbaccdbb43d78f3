/// How a trace gets from the ranks to one file. For the sources of comm/ only. Nothing here is collective.
#pragma once

#include <sar/core/file.hpp>
#include <sar/core/parallel.hpp>

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace sar::inline SAR_PRECISION {

/// The file of one rank, or of all of them. The first failure is kept, and nothing is written after it.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path) noexcept;
  /// The events of one rank, as trace_text() gives them.
  void add(const std::string& text) noexcept;
  /// Gives the file its name. Returns what went wrong, if something did.
  std::exception_ptr finish() noexcept;

 private:
  void attempt(FunctionRef<void()> action) noexcept;

  std::optional<TemporaryFile> file_;
  bool first_ = true;
  std::exception_ptr failure_;
};

/// How long a rank waits for another one that does not answer.
struct TracePatience {
  std::chrono::steady_clock::duration rank_0;  ///< rank 0, for all others together
  std::chrono::steady_clock::duration others;  ///< the others, for rank 0
};

inline constexpr TracePatience trace_patience{std::chrono::seconds(5), std::chrono::seconds(15)};

/// Rank 0 writes what all ranks recorded to `path`, one rank after the other, so that it holds the text of
/// one rank at a time. It leaves out ranks that do not come in time. A rank that rank 0 does not ask in time
/// writes `path`.rankN, and so do all ranks when MPI is finalized: `comm` is MPI_COMM_NULL then. Returns what
/// went wrong with the file of this rank, if something did; throws nothing.
std::exception_ptr write_trace(MPI_Comm comm, int rank, int size, const std::string& path,
                               const TracePatience& patience) noexcept;

/// The same file, whatever the working directory is when it is written.
std::string absolute_path(const std::string& path);

// ---- the trace that SAR_TRACE asks for; a communicator owns it from begin to end

/// The file that SAR_TRACE names, if a communicator of `size` ranks is to write it; null otherwise.
const char* environment_trace_file(int size);
/// Throws InputError when no file can be written to `path`.
void check_environment_trace(const std::string& path);
void begin_environment_trace(std::int64_t zero);
[[nodiscard]] bool environment_trace_runs() noexcept;
[[nodiscard]] bool environment_trace_failed() noexcept;  ///< it could not be written in the end
/// Writes the file, or says on stderr why it cannot; `comm` is MPI_COMM_NULL when MPI is finalized.
void end_environment_trace(MPI_Comm comm, int rank, int size, const std::string& path) noexcept;

}  // namespace sar
