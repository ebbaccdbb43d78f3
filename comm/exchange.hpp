/// Exchange: what all halo exchanges have in common. For the sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/pending_exchange.hpp>

#include <chrono>

namespace sar::inline SAR_PRECISION {

class Exchange : public PendingExchange {
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
  void synchronize() const { comm_.synchronize("exchange of rows"); }
  /// From now on messages may travel; takes a tag. All ranks come to it, or a KnownExchange does so for them:
  /// their tags stay the same whatever fails.
  void begin() noexcept {
    tag_ = comm_.new_tag();
    begun_ = true;
    in_agree_ = comm_.in_agreement();
  }
  /// After everything was sent, received and used.
  void end() noexcept { begun_ = false; }
  [[nodiscard]] bool under_way_in_agree() const noexcept final { return begun_ && in_agree_; }
  Progress advance_in_wait() final;
  void give_up_unless_done() noexcept final;
  void drain() noexcept final;

 protected:
  /// Moves messages on. When `waiting`, no kernel runs: all threads may be used, and results be written.
  /// Returns whether something moved.
  virtual bool advance(bool waiting) = 0;
  /// Everything was sent, and received or thrown away.
  [[nodiscard]] virtual bool done() const noexcept = 0;
  /// A rank that gave up the exchange, or -1.
  [[nodiscard]] virtual int failed_peer() const noexcept = 0;
  /// From now on advance() tells the peers that no more will come, and throws away what they send. It takes
  /// no memory any more.
  virtual void give_up() noexcept = 0;

  [[nodiscard]] bool given_up() const noexcept { return given_up_; }
  [[nodiscard]] int tag() const noexcept { return tag_; }
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
  bool begun_ = false;
  bool in_agree_ = false;
  bool given_up_ = false;
  int tag_ = 0;
};

}  // namespace sar
