// SPDX-License-Identifier: MIT
#include "heartbeat.hpp"

#include <system_error>
#include <utility>

namespace sar::tools {

Heartbeat::Heartbeat(std::ostream* out, std::chrono::steady_clock::duration interval)
    : out_(out), interval_(interval) {
  if (out_ == nullptr) return;
  try {
    thread_ = std::thread([this] { beat(); });
  } catch (const std::system_error&) {  // no memory for a thread: nothing is said
  }
}

Heartbeat::~Heartbeat() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Heartbeat::phase(std::string what) {
  {
    const std::scoped_lock lock(mutex_);
    phase_ = std::move(what);
    begin_ = std::chrono::steady_clock::now();
  }
  changed_.notify_one();
}

void Heartbeat::beat() {
  std::unique_lock lock(mutex_);
  auto next = begin_;  // of this phase
  for (auto begin = begin_; !ends_; begin = begin_) {
    if (phase_.empty()) {
      changed_.wait(lock);
      continue;
    }
    if (next < begin + interval_) next = begin + interval_;
    if (changed_.wait_until(lock, next, [&] { return ends_ || begin_ != begin; })) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(next - begin).count();
    *out_ << "  " << phase_ << ", " << seconds << " s so far" << std::endl;
    next += interval_;
  }
}

}  // namespace sar::tools
