/// Exchange: what all halo exchanges have in common. For the sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>

#include <chrono>

namespace sar {

/// Two exchanges of one communicator may be under way together, and a rank that waits for one of them would
/// stop the other one of its peers: therefore whoever waits moves all exchanges of the communicator on.
class Exchange {
 public:
  explicit Exchange(const Communicator& comm);
  virtual ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Moves on unless the last time was a moment ago; for the poll of a loop.
  void progress();
  /// Moves on now, when no kernel runs.
  void start_more();
  /// Moves all exchanges on until `done`. Throws CommunicationError when a peer has given up.
  void wait_until(FunctionRef<bool()> done);

 protected:
  /// Moves messages on. When `waiting`, no kernel runs: all threads may be used, and results be written. True
  /// when something moved.
  virtual bool advance(bool waiting) = 0;
  /// A rank that gave up the exchange, or -1.
  [[nodiscard]] virtual int quitter() const noexcept = 0;

  /// wait_until() for a destructor: the messages of a peer that has given up count as received; never throws.
  void drain_until(FunctionRef<bool()> done) noexcept;
  /// Runs `body`, which does not count as waiting.
  void work(bool waiting, FunctionRef<void()> body);

  Communicator comm_;

 private:
  using Clock = std::chrono::steady_clock;
  bool advance_once(bool waiting);
  void advance_all();

  Clock::time_point last_progress_{};
  double work_seconds_ = 0;
  int idle_ = 0;
  bool busy_ = false;
  bool broken_ = false;
};

}  // namespace sar
