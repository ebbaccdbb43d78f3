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
  void meet() const { comm_.meet(); }
  /// From now on messages may travel; takes a tag. All ranks call it after they have met, so that their tags
  /// stay the same whatever fails.
  void begin() noexcept {
    tag_ = comm_.new_tag();
    begun_ = true;
  }

 protected:
  /// Moves messages on. When `waiting`, no kernel runs: all threads may be used, and results be written. True
  /// when something moved.
  virtual bool advance(bool waiting) = 0;
  /// A rank that gave up the exchange, or -1.
  [[nodiscard]] virtual int quitter() const noexcept = 0;
  /// From now on advance() tells the peers that no more will come, and throws away what they send. It takes
  /// no memory any more.
  virtual void give_up() noexcept = 0;

  /// give_up() and wait_until() for a destructor: the messages of a peer that has given up count as received;
  /// never throws. Other exchanges that fail meanwhile are given up, too.
  void drain_until(FunctionRef<bool()> done) noexcept;
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  [[nodiscard]] bool given_up() const noexcept { return given_up_; }
  [[nodiscard]] int tag() const noexcept { return tag_; }
  /// Runs `body`, which does not count as waiting.
  void work(bool waiting, FunctionRef<void()> body);

  Communicator comm_;

 private:
  using Clock = std::chrono::steady_clock;
  bool advance_once(bool waiting);
  void advance_all();
  void stop() noexcept;

  Clock::time_point last_progress_{};
  double work_seconds_ = 0;
  int idle_ = 0;
  bool busy_ = false;
  bool broken_ = false;
  bool begun_ = false;
  bool given_up_ = false;
  int tag_ = 0;
};

}  // namespace sar
