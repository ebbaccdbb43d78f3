// SPDX-License-Identifier: MIT

/// Traces: timelines of what each rank computes, communicates and waits for. They are written in Chrome's
/// trace event format, for https://ui.perfetto.dev and chrome://tracing. Each rank is shown as a process,
/// with one lane per thread, lanes for exchanges of rows (from start to end) and lanes for messages (from
/// post to completion).
///
/// No code is necessary: if SAR_TRACE=FILE is set in the environment of every rank, a trace starts when the
/// first communicator is made (of more than one rank, if there is more than one), and FILE is written when
/// its last handle is destroyed. If another communicator follows, FILE is written again, with everything
/// since the start. If FILE is not writable, the first communicator's constructor throws InputError on all
/// ranks. A failure at the end is reported on stderr, and environment_trace_is_lost() returns true on that
/// rank. A communicator whose first process is number W > 0 of the program, its rank in MPI_COMM_WORLD,
/// writes FILE.groupW. In a program with both precisions, sar::double writes FILE.double. A relative path
/// refers to the working directory at the start of the trace.
///
/// Times are relative to the start of the trace. The ranks of a node share a clock. Across nodes, the zero
/// points differ by the time between the ranks' exits from a barrier, and clocks may drift.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/trace/trace.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// A trace from construction to write(), or to destruction.
///
/// @code
/// Trace trace(comm, "step.json");
/// {
///   const TraceScope scope("solver");      // a bar in the timeline
/// }
/// trace.write();
/// @endcode
class Trace : NonCopyable {
 public:
  /// Collective. Starts a trace. Throws InputError, the same on every rank, if `path` is not writable or a
  /// trace runs already.
  Trace(const Communicator& comm, std::string path);
  ~Trace() { end(); }
  /// Local. If write() was not called, writes the trace and ignores errors, as after an exception. It waits
  /// some seconds for missing ranks, then writes the events of the others. A rank that does not reach rank 0
  /// writes `path`.rankN.
  void end() noexcept;

  /// Collective. Ends the trace; rank 0 writes it to `path`, which appears when it is complete. Throws
  /// InputError, the same on every rank, if that fails.
  void write();

 private:
  Communicator comm_;
  std::string path_;
  bool running_ = false;
};

/// Local. Returns whether this process failed to write the file of SAR_TRACE when the last handle of its
/// communicator was destroyed.
[[nodiscard]] bool environment_trace_is_lost() noexcept;

}}  // namespace sar
