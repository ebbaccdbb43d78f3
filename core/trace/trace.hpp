// SPDX-License-Identifier: MIT

/// Named scopes for a timeline of this process, recorded while a trace runs. comm/trace.hpp starts and writes
/// traces. Without a running trace, a scope costs one relaxed load and a branch and allocates nothing.
///
/// Room core/trace: Timelines of one process.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/trace/trace_events.hpp>

#include <cstddef>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

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
