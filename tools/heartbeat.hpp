/// A sign of life from a program that takes its time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

namespace sar::tools {

/// Says again and again what the program has been doing, and for how long: "reading the graph, 60 s so far".
/// It is silent about what takes less than `interval`. Its thread does not call MPI.
class Heartbeat {
 public:
  /// `out`, which outlives this; nullptr: it never says anything (ranks other than 0).
  explicit Heartbeat(std::ostream* out,
                     std::chrono::steady_clock::duration interval = std::chrono::seconds(30));
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// From now on, the program does this.
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
