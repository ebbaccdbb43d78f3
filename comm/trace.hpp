/// Timelines: who computes, who communicates, who waits, and when. Written in Chrome's trace event format,
/// for https://ui.perfetto.dev and chrome://tracing; a process for each rank, a lane for each thread, lanes
/// for exchanges of rows (from their start to their end) and for messages (from post to completion).
///
/// Without a line of code: SAR_TRACE=FILE in the environment of every rank starts a trace when the first
/// communicator is made (of more than one rank, if there are more) and writes FILE when its last handle goes;
/// once more, with everything since the start, if another communicator follows. If FILE cannot be written,
/// the first communicator's constructor throws InputError on all ranks; what fails at the end is not told. A
/// communicator that begins with another than the first process of MPI_COMM_WORLD, rank W, say, writes
/// FILE.groupW. A relative FILE is one of the directory in which the trace starts.
///
/// Times count from the start of the trace. Ranks of a node share a clock; across nodes, the zeros differ by
/// as much as ranks leave one barrier apart (some microseconds on a fast network), and clocks may drift.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/trace.hpp>

#include <string>

namespace sar {

/// A trace from construction to write(), or to destruction.
class Trace {
 public:
  /// Starts it. Throws InputError, the same on every rank, when `path` cannot be written or a trace runs
  /// already. Collective.
  Trace(const Communicator& comm, std::string path);
  /// Unless write() was called: the same, but without errors. Ranks that do not come are not waited for
  /// longer than some seconds: the file then has the events of the others; a rank that does not find rank 0
  /// writes `path`.rankN.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Ends the trace and writes it: rank 0 to `path`, of which nothing is seen before it is complete. Throws
  /// InputError, the same on every rank, when that fails. Collective.
  void write();

 private:
  Communicator comm_;
  std::string path_;
  bool running_ = false;
};

}  // namespace sar
