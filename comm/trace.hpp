/// Timelines: who computes, who communicates, who waits, and when. They are written in Chrome's trace event
/// format, for https://ui.perfetto.dev and chrome://tracing. Each rank is a process there, with a lane for
/// each thread, lanes for exchanges of rows (from their start to their end) and for messages (from post to
/// completion).
///
/// No line of code is needed: with SAR_TRACE=FILE in the environment of every rank, a trace starts when the
/// first communicator is made (of more than one rank, if there are more), and FILE is written when its last
/// handle goes. If another communicator follows, FILE is written once more, with everything since the start.
/// If FILE cannot be written, the first communicator's constructor throws InputError on all ranks; a failure
/// at the end is told on stderr, and environment_trace_is_lost() is true on that rank. A communicator whose
/// first process is rank W > 0 of MPI_COMM_WORLD writes FILE.groupW. Of a program with both precisions,
/// sar::double writes FILE.double. A relative FILE refers to the directory in which the trace starts.
///
/// Times count from the start of the trace. The ranks of a node share a clock. Across nodes, the zeros differ
/// by as much as ranks leave one barrier apart (some microseconds on a fast network), and clocks may drift.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/trace.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// A trace from construction to write(), or to destruction.
class Trace {
 public:
  /// Starts it. Throws InputError, the same on every rank, when `path` cannot be written or a trace runs
  /// already. Collective.
  Trace(const Communicator& comm, std::string path);
  /// Unless write() was called: the same, but without errors. It waits some seconds for ranks that do not
  /// come, and then writes the events of the others. A rank that does not find rank 0 writes `path`.rankN.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Ends the trace and writes it: rank 0 to `path`, which appears when it is complete. Throws InputError,
  /// the same on every rank, when that fails. Collective.
  void write();

 private:
  Communicator comm_;
  std::string path_;
  bool running_ = false;
};

/// Whether the file of SAR_TRACE, which this process was to write when a communicator's last handle went,
/// could not be written. Local.
[[nodiscard]] bool environment_trace_is_lost() noexcept;

}  // namespace sar
