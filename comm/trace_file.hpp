/// How a trace gets from the ranks to one file. For the sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

namespace sar {

/// How long a rank without an answer is waited for.
struct TracePatience {
  std::chrono::steady_clock::duration rank_0;  ///< by rank 0, for all others together
  std::chrono::steady_clock::duration others;  ///< by the others, for rank 0
};

inline constexpr TracePatience trace_patience{std::chrono::seconds(5), std::chrono::seconds(15)};

/// Rank 0 writes what all ranks recorded to `path`, one rank after the other, so that it holds one rank's
/// text at a time. Ranks that do not come in time are left out; a rank that rank 0 does not ask in time
/// writes `path`.rankN, and so do all when MPI is no more: `comm` is MPI_COMM_NULL then. Returns what went
/// wrong with the file of this rank, if something did; throws nothing.
std::exception_ptr write_trace(MPI_Comm comm, int rank, int size, const std::string& path,
                               const TracePatience& patience) noexcept;
/// What steady_nanoseconds() was when all ranks left a barrier; the same for the ranks of a node, which share
/// a clock. Collective.
std::int64_t common_zero(const Communicator& comm);

/// Starts the trace of SAR_TRACE, if that is set, with the first communicator. Returns the file that this
/// communicator writes when it ends, or nothing. Collective.
std::string start_environment_trace(const Communicator& comm);
/// Writes it; `comm` is MPI_COMM_NULL when MPI is no more.
void end_environment_trace(MPI_Comm comm, int rank, int size, const std::string& path) noexcept;

}  // namespace sar
