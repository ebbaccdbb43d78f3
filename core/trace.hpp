/// A timeline of what this process does: scopes with a name, recorded while a trace runs (comm/trace.hpp
/// starts and writes it). When none runs, a scope costs one relaxed load and a branch, and nothing is
/// allocated.
#pragma once

#include <sar/core/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sar {

/// What a scope spends its time on: its category in the timeline.
enum class TraceKind : std::uint8_t {
  compute,        ///< kernels of the library
  communication,  ///< what communication makes this rank do: collectives, packing, adding
  wait,           ///< blocked until other ranks or the wire have done their part
  host,           ///< phases of the program around the library
};

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
  std::uint8_t lane;             ///< a TraceLane
  TraceKind kind;
  char detail[38];  ///< ends with 0
};

}  // namespace trace_detail

/// Whether a trace runs in this process.
[[nodiscard]] inline bool tracing() noexcept {
  return trace_detail::running.load(std::memory_order_relaxed);
}

/// Records its own life time in the lane of its thread. Scopes of a thread nest.
///
///     const TraceScope scope("solver step");
class TraceScope {
 public:
  /// `name` is a string literal: it is read when the trace is written.
  explicit TraceScope(const char* name, TraceKind kind = TraceKind::host) noexcept {
    if (tracing()) [[unlikely]]
      open(name, kind);
  }
  ~TraceScope() {
    if (open_) [[unlikely]]
      close();
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  /// What distinguishes this scope from others of its name; the first 37 bytes of the parts, written one
  /// after the other as by operator<<. Costs nothing when no trace runs.
  template <class... Parts>
  void detail(const Parts&... parts) {
    if (open_) [[unlikely]]
      set_detail(concat(parts...));
  }

  /// Enters bytes that went to and came from other ranks into the innermost scope of this thread. For comm/.
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

}  // namespace sar
