// SPDX-License-Identifier: MIT

/// Collects the events of all ranks in one trace file. For the sources of comm/ only. Nothing here is
/// collective.
#pragma once

#include <sar/core/files/file.hpp>
#include <sar/core/threads/parallel.hpp>

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// A trace file of one rank or of all ranks. Keeps the first failure; nothing is written after it.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path) noexcept;
  /// Appends the events of one rank, in the format of trace_text().
  void add(const std::string& text) noexcept;
  /// Completes the file and gives it its name. Returns the first failure, or null.
  std::exception_ptr finish() noexcept;

 private:
  void attempt(FunctionRef<void()> action) noexcept;

  std::optional<TemporaryFile> file_;
  bool first_ = true;
  std::exception_ptr failure_;
};

/// How long a rank waits for another one that does not answer.
struct TracePatience {
  std::chrono::steady_clock::duration rank_0;  ///< rank 0, for all other ranks together
  std::chrono::steady_clock::duration others;  ///< every other rank, for rank 0
};

inline constexpr TracePatience trace_patience{std::chrono::seconds(5), std::chrono::seconds(15)};

/// Rank 0 writes the events of all ranks to `path`, one rank after the other, so that it holds the text of
/// one rank at a time. It omits ranks that do not answer in time. A rank that is not asked in time writes
/// `path`.rankN; so do all ranks after MPI is finalized (`comm` is MPI_COMM_NULL then). Returns the failure
/// of this rank's file, or null.
std::exception_ptr write_trace(MPI_Comm comm, int rank, int size, const std::string& path,
                               const TracePatience& patience) noexcept;

/// Returns an absolute path, so that a later change of the working directory does not matter.
std::string absolute_path(const std::string& path);

// ---- the trace of SAR_TRACE, owned by one communicator

/// Returns the file name in SAR_TRACE if a communicator of `size` ranks is to write it, and null otherwise.
const char* environment_trace_file(int size);
/// Throws InputError if `path` is not writable.
void check_environment_trace(const std::string& path);
void begin_environment_trace(std::int64_t zero);
[[nodiscard]] bool environment_trace_runs() noexcept;
[[nodiscard]] bool environment_trace_failed() noexcept;  ///< the final write failed
/// Writes the file, or reports on stderr why it cannot; `comm` is MPI_COMM_NULL if MPI is finalized.
void end_environment_trace(MPI_Comm comm, int rank, int size, const std::string& path) noexcept;

}}  // namespace sar
