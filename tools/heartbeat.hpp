// SPDX-License-Identifier: MIT

/// Progress lines of long runs.
#pragma once

#include <sar/config.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

namespace sar::tools {

/// Prints one line per interval with the current phase and its duration: "reading the graph, 60 s so far".
/// Phases shorter than `interval` print nothing. The printing thread makes no MPI calls.
class Heartbeat : NonCopyable {
 public:
  /// `out` outlives this; nullptr: prints nothing (ranks other than 0).
  explicit Heartbeat(std::ostream* out,
                     std::chrono::steady_clock::duration interval = std::chrono::seconds(30));
  ~Heartbeat();

  /// Begins the next phase.
  void phase(std::string what);

 private:
  void beat();

  std::ostream* out_;
  std::chrono::steady_clock::duration interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string phase_;
  std::chrono::steady_clock::time_point begin_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace sar::tools
