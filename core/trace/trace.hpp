// SPDX-License-Identifier: MIT

/// Named scopes for a timeline of this process, recorded while a trace runs. comm/trace.hpp starts and writes
/// traces. Without a running trace, a scope costs one relaxed load and a branch and allocates nothing.
///
/// Room core/trace: Timelines of one process.
#pragma once

#include <sar/config.hpp>
#include <sar/core/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// The recorder of traces: events with a begin and an end time, kept in memory while a trace runs. trace.hpp
// records scopes with it, comm/ records messages.
//
// Memory is bounded: a process keeps the first max_trace_events events (25 MB) of a trace and counts the
// dropped ones.

/// The category of a scope in the timeline.
enum class TraceKind : std::uint8_t {
  compute,        ///< kernels of the library
  communication,  ///< work caused by communication: collectives, packing, adding received rows
  wait,           ///< blocked until other ranks or the network are done
  host,           ///< phases of the host program
};

/// The lane in which an event is drawn. Scopes nest in the lane of their thread. Messages overlap: each is
/// drawn in the first free lane of its kind.
enum class TraceLane : std::uint8_t { thread, exchange, send, receive };

namespace trace_detail {

inline constinit std::atomic<bool> running{false};

/// A recorded event.
struct Event {
  const char* name;
  std::int64_t begin, end;       ///< nanoseconds of the steady clock
  std::uint64_t sent, received;  ///< bytes
  std::uint64_t live;            ///< live_bytes() at the end
  std::int32_t peer;             ///< the other rank of a message, or -1
  std::int32_t thread;           ///< for scopes: threads are numbered in the order of their first event
  TraceLane lane;
  TraceKind kind;
  char detail[38];  ///< null-terminated
};

/// Adds an event to the running trace.
void record(const Event& event) noexcept;

}  // namespace trace_detail

inline constexpr std::size_t max_trace_events = std::size_t{1} << 18;

/// Returns whether a trace runs in this process.
[[nodiscard]] inline bool tracing() noexcept {
  return trace_detail::running.load(std::memory_order_relaxed);
}

/// Returns the time of the steady clock in nanoseconds.
[[nodiscard]] std::int64_t steady_nanoseconds() noexcept;

/// Returns steady_nanoseconds() if a trace runs, and 0 otherwise.
[[nodiscard]] std::int64_t trace_time() noexcept;

/// Starts a new trace whose times are relative to `zero` (steady clock). Returns false if a trace runs
/// already.
bool start_trace(std::int64_t zero);
/// Stops the trace. Its events are kept until the next start.
void stop_trace() noexcept;

/// Records an event from `begin` to `end`, both from trace_time(); does nothing if `begin` is 0. `sent` and
/// `received` are bytes exchanged with rank `peer` (-1: no single rank).
void trace_event(TraceLane lane, const char* name, std::int64_t begin, std::int64_t end, int peer = -1,
                 std::size_t sent = 0, std::size_t received = 0) noexcept;

/// The events of a trace.
struct RecordedTrace {
  std::vector<trace_detail::Event> events;  ///< sorted by their end times
  std::size_t dropped = 0;                  ///< events beyond max_trace_events
  std::int64_t zero = 0;
};
/// Returns a copy of the events recorded by this process.
[[nodiscard]] RecordedTrace recorded_trace();

// Formats a recorded trace as text.

/// Returns the trace of this process as comma-separated JSON objects in Chrome's trace event format: the
/// complete events of process `rank`, the names of its lanes, and the counter live_bytes at the end of each
/// scope.
[[nodiscard]] std::string trace_text(int rank);

/// Records its own lifetime as a scope of this thread. Scopes of a thread nest.
///
/// @code
/// const TraceScope scope("solver step");
/// @endcode
class TraceScope : NonCopyable {
 public:
  /// `name` must be a string literal: it is read when the trace is written.
  explicit TraceScope(const char* name, TraceKind kind = TraceKind::host) noexcept {
    if (tracing()) [[unlikely]]
      open(name, kind);
  }
  ~TraceScope() {
    if (open_) [[unlikely]]
      close();
  }

  /// Adds a description to this scope: the parts concatenated as with operator<<, cut to 37 bytes. Costs
  /// nothing without a running trace.
  template <class... Parts>
  void detail(const Parts&... parts) {
    if (open_) [[unlikely]]
      set_detail(concat(parts...));
  }

  /// Adds bytes sent to and received from other ranks to the innermost scope of this thread. For comm/.
  static void add_bytes(std::size_t sent, std::size_t received) noexcept {
    if (tracing()) [[unlikely]]
      add_to_innermost(sent, received);
  }

 private:
  void open(const char* name, TraceKind kind) noexcept;
  void close() noexcept;
  void set_detail(const std::string& text) noexcept;
  static void add_to_innermost(std::size_t sent, std::size_t received) noexcept;

  bool open_ = false;
  TraceScope* outer_;
  trace_detail::Event event_;  // set by open()
};
}}  // namespace sar
