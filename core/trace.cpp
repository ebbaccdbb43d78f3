#include <sar/core/memory.hpp>
#include <sar/core/trace.hpp>
#include <sar/core/trace_events.hpp>

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

namespace sar {
namespace {

using trace_detail::Event;
using trace_detail::running;

struct Recorder {
  std::mutex mutex;
  std::vector<Event> events;
  std::size_t dropped = 0;
  std::int64_t zero = 0;
};

/// Never destroyed: threads may record until the program ends.
Recorder& recorder() {
  static Recorder* const instance = new Recorder;
  return *instance;
}

thread_local TraceScope* innermost = nullptr;

std::int32_t thread_number() noexcept {
  static std::atomic<std::int32_t> threads{0};
  static thread_local const std::int32_t mine = threads.fetch_add(1);
  return mine;
}

void record(const Event& event) noexcept {
  Recorder& r = recorder();
  const std::scoped_lock lock(r.mutex);
  if (event.begin < r.zero) return;  // of an earlier trace
  if (r.events.size() < max_trace_events)
    r.events.push_back(event);
  else
    ++r.dropped;
}

}  // namespace

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
  r.events.reserve(max_trace_events);  // at once: pages that are not used cost nothing
  r.dropped = 0;
  r.zero = zero;
  running = true;
  return true;
}

void stop_trace() noexcept {
  running = false;
}

void TraceScope::open(const char* name, TraceKind kind) noexcept {
  event_.name = name;
  event_.sent = event_.received = 0;
  event_.peer = -1;
  event_.thread = thread_number();
  event_.lane = static_cast<std::uint8_t>(TraceLane::thread);
  event_.kind = kind;
  event_.detail[0] = 0;
  outer_ = std::exchange(innermost, this);
  open_ = true;
  event_.begin = steady_nanoseconds();
}

void TraceScope::close() noexcept {
  event_.end = steady_nanoseconds();
  event_.live = live_bytes();
  innermost = outer_;
  record(event_);
}

void TraceScope::set_detail(const std::string& text) noexcept {
  const std::size_t length = text.copy(event_.detail, sizeof event_.detail - 1);
  event_.detail[length] = 0;
}

void TraceScope::add_to_innermost(std::size_t sent, std::size_t received) noexcept {
  if (innermost == nullptr) return;
  innermost->event_.sent += sent;
  innermost->event_.received += received;
}

void trace_event(TraceLane lane, const char* name, std::int64_t begin, std::int64_t end, int peer,
                 std::size_t sent, std::size_t received) noexcept {
  if (begin == 0 || !tracing()) return;
  record({.name = name,
          .begin = begin,
          .end = end,
          .sent = sent,
          .received = received,
          .live = 0,
          .peer = peer,
          .thread = 0,
          .lane = static_cast<std::uint8_t>(lane),
          .kind = TraceKind::communication,
          .detail = {}});
}

RecordedTrace recorded_trace() {
  Recorder& r = recorder();
  const std::scoped_lock lock(r.mutex);
  return {.events = r.events, .dropped = r.dropped, .zero = r.zero};
}

}  // namespace sar
