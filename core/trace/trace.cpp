// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// All threads append to one list under a mutex. The list reserves its whole memory when a trace starts, so
// record() never allocates.

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

// Sorts the events by lane and begin, an outer scope before the scopes in it: O(n log n). A message takes
// the first lane of its kind that is free when the message begins; the search takes O(lanes) time.

namespace {

using trace_detail::Event;

constexpr std::int32_t lanes_of_a_kind = 1 << 20;

std::string_view to_string(TraceKind kind) {
  constexpr std::array<std::string_view, 4> names{"compute", "communication", "wait",
                                                  "host"};  // in the order of TraceKind
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(TraceLane lane) {
  constexpr std::array<std::string_view, 4> names{"thread", "exchange", "send",
                                                  "receive"};  // in the order of TraceLane
  return names[static_cast<std::size_t>(lane)];
}

/// Returns the length in bytes of the UTF-8 character at the front of `text`, or 0 if there is none. (Accepts
/// surrogates and some overlong encodings.)
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (lead >= 0xf5 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

/// Appends JSON text. Does not use streams or printf: they are slow and depend on the host's locale.
class Writer {
 public:
  Writer& operator<<(std::string_view literal) {
    text_ += literal;
    return *this;
  }
  template <std::integral Number>
  Writer& operator<<(Number number) {
    text_ += std::to_string(number);
    return *this;
  }
  /// Appends a quoted string. Bytes that are not UTF-8, such as half a character at the end of a cut detail,
  /// are dropped.
  Writer& quoted(std::string_view text) {
    text_ += '"';
    while (!text.empty()) {
      const std::size_t length = character_length(text);
      if (text[0] == '"' || text[0] == '\\') text_ += '\\';
      if (static_cast<unsigned char>(text[0]) < 0x20)
        text_ += ' ';
      else
        text_ += text.substr(0, length);
      text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    text_ += '"';
    return *this;
  }
  /// Appends a time given in nanoseconds in microseconds.
  Writer& microseconds(std::int64_t nanoseconds) {
    const std::string digits = std::to_string(1000 + nanoseconds % 1000);
    return *this << nanoseconds / 1000 << "." << std::string_view(digits).substr(1);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

bool is_scope(const Event& event) {
  return event.lane == TraceLane::thread;
}

/// Sorts events by lane kind and time. Returns the number of the lane in which each is drawn.
std::vector<std::int32_t> lanes_of(std::vector<Event>& events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.lane, a.thread, a.begin, -a.end) < std::tuple(b.lane, b.thread, b.begin, -b.end);
  });
  std::vector<std::int32_t> lanes;
  lanes.reserve(events.size());
  std::map<TraceLane, std::vector<std::int64_t>> busy_until;  // end time of the last event in each lane
  for (const Event& event : events) {
    std::int32_t number = event.thread;
    if (!is_scope(event)) {
      std::vector<std::int64_t>& ends = busy_until[event.lane];
      auto free =
          std::find_if(ends.begin(), ends.end(), [&](std::int64_t end) { return end <= event.begin; });
      if (free == ends.end()) free = ends.insert(free, 0);
      *free = event.end;
      number = static_cast<std::int32_t>(free - ends.begin());
    }
    lanes.push_back(static_cast<std::int32_t>(event.lane) * lanes_of_a_kind + number);
  }
  return lanes;
}

/// Writes the events of one rank; each is preceded by a comma and a newline.
class RankWriter {
 public:
  RankWriter(Writer& out, int rank, std::int64_t zero) : out_(out), rank_(rank), zero_(zero) {}

  void name_process(std::size_t dropped) {
    out_ << R"({"ph":"M","name":"process_name","pid":)" << rank_ << R"(,"args":{"name":"rank )" << rank_
         << "\"}}";
    next("M", "process_sort_index") << R"(,"args":{"sort_index":)" << rank_ << "}}";
    if (dropped > 0)
      next("M", "process_labels") << R"(,"args":{"labels":")" << dropped << R"( events dropped"}})";
  }
  void name_lane(TraceLane kind, std::int32_t lane) {
    next("M", "thread_name") << ",\"tid\":" << lane << R"(,"args":{"name":")" << to_string(kind) << " "
                             << lane % lanes_of_a_kind << "\"}}";
    next("M", "thread_sort_index") << ",\"tid\":" << lane << R"(,"args":{"sort_index":)" << lane << "}}";
  }
  void event(const Event& event, std::int32_t lane) {
    std::string name = event.name;
    if (event.peer >= 0) name.append(" ").append(std::to_string(event.peer));
    next("X", name) << R"(,"cat":")" << to_string(event.kind) << R"(","tid":)" << lane;
    out_ << ",\"ts\":";
    out_.microseconds(event.begin - zero_) << ",\"dur\":";
    out_.microseconds(event.end - event.begin);
    if (event.kind == TraceKind::wait) out_ << R"(,"cname":"terrible")";
    out_ << ",\"args\":{";
    std::string_view comma;
    const auto argument = [&](std::string_view key) -> Writer& {
      return out_ << std::exchange(comma, ",") << "\"" << key << "\":";
    };
    if (event.detail[0] != 0) argument("detail").quoted(event.detail);
    if (event.peer >= 0) argument("peer") << event.peer;
    if (event.sent > 0) argument("bytes_sent") << event.sent;
    if (event.received > 0) argument("bytes_received") << event.received;
    out_ << "}}";
  }
  void live_bytes(std::int64_t time, std::uint64_t bytes) {
    next("C", "live_bytes") << ",\"ts\":";
    out_.microseconds(time - zero_) << R"(,"args":{"bytes":)" << bytes << "}}";
  }

 private:
  Writer& next(std::string_view phase, std::string_view name) {
    out_ << ",\n{\"ph\":\"" << phase << "\",\"name\":";
    return out_.quoted(name) << ",\"pid\":" << rank_;
  }

  Writer& out_;
  int rank_;
  std::int64_t zero_;
};

}  // namespace

std::string trace_text(int rank) {
  RecordedTrace trace = recorded_trace();
  Writer out;
  RankWriter writer(out, rank, trace.zero);
  writer.name_process(trace.dropped);

  std::vector<std::pair<std::int64_t, std::uint64_t>> live;
  for (const Event& event : trace.events)
    if (is_scope(event)) live.emplace_back(event.end, event.live);
  std::sort(live.begin(), live.end());
  std::uint64_t last = 0;
  for (const auto& [time, bytes] : live)
    if (std::exchange(last, bytes) != bytes) writer.live_bytes(time, bytes);

  const std::vector<std::int32_t> lanes = lanes_of(trace.events);
  std::map<std::int32_t, TraceLane> kinds;
  for (std::size_t i = 0; i < lanes.size(); ++i) kinds.emplace(lanes[i], trace.events[i].lane);
  for (const auto& [lane, kind] : kinds) writer.name_lane(kind, lane);
  for (std::size_t i = 0; i < lanes.size(); ++i) writer.event(trace.events[i], lanes[i]);
  return out.take();
}

namespace {

thread_local TraceScope* innermost = nullptr;

std::int32_t thread_number() noexcept {
  static std::atomic<std::int32_t> threads{0};
  static thread_local const std::int32_t mine = threads.fetch_add(1);
  return mine;
}

}  // namespace

void TraceScope::open(const char* name, TraceKind kind) noexcept {
  event_.name = name;
  event_.sent = event_.received = 0;
  event_.peer = -1;
  event_.thread = thread_number();
  event_.lane = TraceLane::thread;
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
  trace_detail::record(event_);
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
}}  // namespace sar
