/// The recorder behind the scopes of trace.hpp. For the sources of the library only.
///
/// Memory is bounded: a process keeps the first max_trace_events events (25 MB) of a trace and counts the
/// others.
#pragma once

#include <sar/core/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sar {

inline constexpr std::size_t max_trace_events = std::size_t{1} << 18;

/// Where an event is drawn. Scopes nest in the lane of their thread; messages overlap each other, and take
/// the first lane of their kind that is free.
enum class TraceLane : std::uint8_t { thread, exchange, send, receive };

/// Nanoseconds of the steady clock; 0 when no trace runs.
[[nodiscard]] std::int64_t trace_time() noexcept;

/// The steady clock, whether a trace runs or not.
[[nodiscard]] std::int64_t steady_nanoseconds() noexcept;

/// Starts a new trace whose times count from `zero` (of the steady clock); false when one runs already.
bool start_trace(std::int64_t zero);
/// What was recorded is kept until the next start.
void stop_trace() noexcept;

/// Records [begin, end), both of trace_time(); nothing if `begin` is 0. `sent`, `received`: bytes, to or from
/// rank `peer` unless that is -1.
void trace_event(TraceLane lane, const char* name, std::int64_t begin, std::int64_t end, int peer = -1,
                 std::size_t sent = 0, std::size_t received = 0) noexcept;

struct RecordedTrace {
  std::vector<trace_detail::Event> events;  ///< in the order of their ends
  std::size_t dropped = 0;                  ///< events beyond max_trace_events
  std::int64_t zero = 0;
};
[[nodiscard]] RecordedTrace recorded_trace();

/// What was recorded, as JSON objects of Chrome's trace event format, separated by commas: complete events of
/// process `rank`, names of its lanes, the counter live_bytes at the ends of scopes.
[[nodiscard]] std::string trace_text(int rank);

}  // namespace sar
