/// The recorder of a timeline: events with a beginning and an end, kept in memory while a trace runs.
/// trace.hpp records scopes with it, comm/ records messages.
///
/// Memory is bounded: a process keeps the first max_trace_events events (25 MB) of a trace and counts the
/// others.
#pragma once

#include <sar/config.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// What a scope spends its time on: its category in the timeline.
enum class TraceKind : std::uint8_t {
  compute,        ///< kernels of the library
  communication,  ///< what communication makes this rank do: collectives, packing, adding
  wait,           ///< blocked until other ranks or the wire have done their part
  host,           ///< phases of the program around the library
};

/// Where an event is drawn. Scopes nest in the lane of their thread. Messages overlap each other, and each
/// takes the first lane of its kind that is free.
enum class TraceLane : std::uint8_t { thread, exchange, send, receive };

namespace trace_detail {

inline constinit std::atomic<bool> running{false};

/// Something that took time.
struct Event {
  const char* name;
  std::int64_t begin, end;       ///< nanoseconds of the steady clock
  std::uint64_t sent, received;  ///< bytes
  std::uint64_t live;            ///< live_bytes() at the end
  std::int32_t peer;             ///< the other rank of a message, or -1
  std::int32_t thread;           ///< of a scope: in the order in which threads first record something
  TraceLane lane;
  TraceKind kind;
  char detail[38];  ///< ends with 0
};

/// Adds an event to the trace that runs.
void record(const Event& event) noexcept;

}  // namespace trace_detail

inline constexpr std::size_t max_trace_events = std::size_t{1} << 18;

/// Whether a trace runs in this process.
[[nodiscard]] inline bool tracing() noexcept {
  return trace_detail::running.load(std::memory_order_relaxed);
}

/// The steady clock, whether a trace runs or not.
[[nodiscard]] std::int64_t steady_nanoseconds() noexcept;

/// The same; 0 when no trace runs.
[[nodiscard]] std::int64_t trace_time() noexcept;

/// Starts a new trace whose times count from `zero` (of the steady clock). Returns false when one runs
/// already.
bool start_trace(std::int64_t zero);
/// Ends the trace. What it recorded is kept until the next start.
void stop_trace() noexcept;

/// Records [begin, end), both of trace_time(); nothing if `begin` is 0. `sent` and `received` are bytes, to
/// or from rank `peer` unless that is -1.
void trace_event(TraceLane lane, const char* name, std::int64_t begin, std::int64_t end, int peer = -1,
                 std::size_t sent = 0, std::size_t received = 0) noexcept;

struct RecordedTrace {
  std::vector<trace_detail::Event> events;  ///< in the order of their ends
  std::size_t dropped = 0;                  ///< events beyond max_trace_events
  std::int64_t zero = 0;
};
[[nodiscard]] RecordedTrace recorded_trace();

}  // namespace sar
