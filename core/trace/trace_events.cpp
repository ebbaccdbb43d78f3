// SPDX-License-Identifier: MIT

// All threads append to one list under a mutex. The list reserves its whole memory when a trace starts, so
// record() never allocates.
#include <sar/core/trace/trace_events.hpp>

#include <chrono>
#include <mutex>

namespace sar { inline namespace SAR_PRECISION {
namespace {

struct Recorder {
  std::mutex mutex;
  std::vector<trace_detail::Event> events;
  std::size_t dropped = 0;
  std::int64_t zero = 0;
};

/// Never destroyed: threads may record until the program ends.
Recorder& recorder() {
  static Recorder* const instance = new Recorder;
  return *instance;
}

}  // namespace

void trace_detail::record(const Event& event) noexcept {
  Recorder& r = recorder();
  const std::scoped_lock lock(r.mutex);
  if (event.begin < r.zero) return;  // the event began before this trace
  if (r.events.size() < max_trace_events)
    r.events.push_back(event);
  else
    ++r.dropped;
}

std::int64_t steady_nanoseconds() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::int64_t trace_time() noexcept {
  return tracing() ? steady_nanoseconds() : 0;
}

bool start_trace(std::int64_t zero) {
  Recorder& r = recorder();
  const std::scoped_lock lock(r.mutex);
  if (tracing()) return false;
  r.events.clear();
  r.events.reserve(max_trace_events);  // reserve everything at once: untouched pages cost nothing
  r.dropped = 0;
  r.zero = zero;
  trace_detail::running = true;
  return true;
}

void stop_trace() noexcept {
  trace_detail::running = false;
}

void trace_event(TraceLane lane, const char* name, std::int64_t begin, std::int64_t end, int peer,
                 std::size_t sent, std::size_t received) noexcept {
  if (begin == 0 || !tracing()) return;
  trace_detail::record({.name = name,
                        .begin = begin,
                        .end = end,
                        .sent = sent,
                        .received = received,
                        .live = 0,
                        .peer = peer,
                        .thread = 0,
                        .lane = lane,
                        .kind = TraceKind::communication,
                        .detail = {}});
}

RecordedTrace recorded_trace() {
  Recorder& r = recorder();
  const std::scoped_lock lock(r.mutex);
  return {.events = r.events, .dropped = r.dropped, .zero = r.zero};
}

}}  // namespace sar
