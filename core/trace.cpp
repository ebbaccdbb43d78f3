#include <sar/core/memory.hpp>
#include <sar/core/trace.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <tuple>
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
  if (r.events.size() < r.events.capacity())
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

namespace {

constexpr std::int32_t lanes_of_a_kind = 1 << 20;

const char* to_string(TraceKind kind) {
  switch (kind) {
    case TraceKind::compute:
      return "compute";
    case TraceKind::communication:
      return "communication";
    case TraceKind::wait:
      return "wait";
    case TraceKind::host:
      break;
  }
  return "host";
}

const char* to_string(TraceLane lane) {
  switch (lane) {
    case TraceLane::exchange:
      return "exchange";
    case TraceLane::send:
      return "send";
    case TraceLane::receive:
      return "receive";
    case TraceLane::thread:
      break;
  }
  return "thread";
}

/// A JSON string.
std::string quoted(const char* text) {
  std::string out = "\"";
  for (; *text != 0; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') out += '\\';
    out += c < 0x20 ? ' ' : *text;
  }
  return out + "\"";
}

/// Microseconds since the start.
std::string microseconds(std::int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(nanoseconds) / 1e3);
  return text;
}

/// Events by lane and time, each with the lane that it is drawn in.
std::vector<std::pair<std::int32_t, Event>> in_lanes(std::vector<Event> events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.lane, a.thread, a.begin, -a.end) < std::tuple(b.lane, b.thread, b.begin, -b.end);
  });
  std::vector<std::pair<std::int32_t, Event>> placed;
  placed.reserve(events.size());
  std::map<std::uint8_t, std::vector<std::int64_t>> busy_until;  // of each lane of a kind
  for (const Event& event : events) {
    std::int32_t number = event.thread;
    if (event.lane != static_cast<std::uint8_t>(TraceLane::thread)) {
      std::vector<std::int64_t>& ends = busy_until[event.lane];
      auto free =
          std::find_if(ends.begin(), ends.end(), [&](std::int64_t end) { return end <= event.begin; });
      if (free == ends.end()) free = ends.insert(free, 0);
      *free = event.end;
      number = static_cast<std::int32_t>(free - ends.begin());
    }
    placed.emplace_back(event.lane * lanes_of_a_kind + number, event);
  }
  return placed;
}

}  // namespace

std::string trace_text(int rank) {
  Recorder& r = recorder();
  const std::scoped_lock lock(r.mutex);
  const std::string process = concat("\"pid\":", rank);
  std::string text = concat("{\"ph\":\"M\",\"name\":\"process_name\",", process, R"(,"args":{"name":"rank )",
                            rank, "\"}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",", process,
                            ",\"args\":{\"sort_index\":", rank, "}}");
  if (r.dropped > 0)
    text += concat(",\n{\"ph\":\"M\",\"name\":\"process_labels\",", process, ",\"args\":{\"labels\":\"",
                   r.dropped, " events dropped\"}}");
  std::int32_t last_lane = -1;
  std::uint64_t last_live = 0;
  for (const auto& [lane, event] : in_lanes(r.events)) {
    const std::string place = concat(process, ",\"tid\":", lane);
    const bool scope = event.lane == static_cast<std::uint8_t>(TraceLane::thread);
    if (lane != last_lane)
      text += concat(",\n{\"ph\":\"M\",\"name\":\"thread_name\",", place, ",\"args\":{\"name\":\"",
                     to_string(static_cast<TraceLane>(event.lane)), " ", lane % lanes_of_a_kind,
                     "\"}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",", place,
                     ",\"args\":{\"sort_index\":", lane, "}}");
    last_lane = lane;

    std::string arguments;
    const auto argument = [&](const char* name, const std::string& value) {
      arguments += concat(arguments.empty() ? "" : ",", "\"", name, "\":", value);
    };
    if (event.detail[0] != 0) argument("detail", quoted(event.detail));
    if (event.peer >= 0) argument("peer", std::to_string(event.peer));
    if (event.sent > 0) argument("bytes_sent", std::to_string(event.sent));
    if (event.received > 0) argument("bytes_received", std::to_string(event.received));
    const std::string name = event.peer >= 0 ? concat(event.name, " ", event.peer) : event.name;
    text += concat(",\n{\"ph\":\"X\",\"name\":", quoted(name.c_str()), ",\"cat\":\"", to_string(event.kind),
                   "\",", place, ",\"ts\":", microseconds(event.begin - r.zero),
                   ",\"dur\":", microseconds(event.end - event.begin),
                   event.kind == TraceKind::wait ? ",\"cname\":\"terrible\"" : "", ",\"args\":{", arguments,
                   "}}");
    if (!scope || event.live == last_live) continue;
    last_live = event.live;
    text += concat(",\n{\"ph\":\"C\",\"name\":\"live_bytes\",", process,
                   ",\"ts\":", microseconds(event.end - r.zero), ",\"args\":{\"bytes\":", event.live, "}}");
  }
  return text;
}

}  // namespace sar
