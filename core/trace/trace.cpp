// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/core/trace/trace.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
