/// A timeline of what this process does: scopes with a name, recorded while a trace runs. comm/trace.hpp
/// starts and writes a trace. When none runs, a scope costs one relaxed load and a branch, and allocates
/// nothing.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/trace_events.hpp>

#include <cstddef>
#include <string>

namespace sar::inline SAR_PRECISION {

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

  /// Distinguishes this scope from others of its name: the parts, written one after the other as by
  /// operator<<, up to 37 bytes. Costs nothing when no trace runs.
  template <class... Parts>
  void detail(const Parts&... parts) {
    if (open_) [[unlikely]]
      set_detail(concat(parts...));
  }

  /// Adds bytes that went to and came from other ranks to the innermost scope of this thread. For comm/.
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
