// SPDX-License-Identifier: MIT

/// Exchange: the common base of halo exchanges. For the sources of comm/ only.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/pending_exchange.hpp>
#include <sar/core/threads/parallel.hpp>

#include <chrono>
#include <exception>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

/// Begins and ends an exchange, advances messages, waits, and gives up after failures.
class Exchange : public PendingExchange {
 public:
  explicit Exchange(const Communicator& comm);
  virtual ~Exchange();

  /// Advances messages unless that was done a moment ago. The loops of the thread that began the exchange
  /// call it (PollScope).
  void progress();
  /// Advances messages now, when no kernel runs.
  void start_more();
  /// Advances all exchanges until `done` returns true. Throws CommunicationError if a peer has given up.
  void wait_until(FunctionRef<bool()> done);
  void synchronize() const { comm_.synchronize("exchange of rows"); }
  /// Takes a tag; from now on messages may be sent. Every rank must reach this call, or a RecordedExchange
  /// reaches it in its place, so that the tags of all ranks stay equal even after failures.
  void begin() noexcept {
    tag_ = comm_.new_tag();
    begun_ = true;
    depth_ = comm_.agree_depth();
    polled_.emplace(poll_);
  }
  /// Call it after everything was sent, received and used.
  void end() noexcept {
    begun_ = false;
    polled_.reset();
  }
  [[nodiscard]] bool under_way_within(int depth) const noexcept final { return begun_ && depth_ >= depth; }
  Progress advance_in_wait() final;
  void give_up_unless_done() noexcept final;
  void fail() noexcept final;
  void drain() noexcept final;

 protected:
  /// Advances messages. If `waiting`, no kernel runs: all threads may be used and results may be written.
  /// Returns whether anything moved.
  virtual bool advance(bool waiting) = 0;
  /// Returns whether everything was sent, and received or discarded.
  [[nodiscard]] virtual bool done() const noexcept = 0;
  /// Returns a rank that gave up the exchange, or -1.
  [[nodiscard]] virtual int failed_peer() const noexcept = 0;
  /// From now on, advance() tells the peers that this rank gives up, and discards what they send. It
  /// allocates no memory any more.
  virtual void give_up() noexcept = 0;

  [[nodiscard]] bool given_up() const noexcept { return given_up_; }
  [[nodiscard]] int tag() const noexcept { return tag_; }
  /// Runs `body` and does not count its time as waiting.
  void work(bool waiting, FunctionRef<void()> body);

  Communicator comm_;

 private:
  using Clock = std::chrono::steady_clock;
  /// What loops call.
  struct Poll {
    Exchange& of;
    void operator()() const { of.progress(); }
  };
  bool advance_once(bool waiting);
  void advance_all();

  Clock::time_point last_progress_{};
  double work_seconds_ = 0;
  int idle_ = 0;
  bool busy_ = false;
  bool broken_ = false;
  bool begun_ = false;
  int depth_ = 0;
  bool given_up_ = false;
  std::exception_ptr failure_;
  int tag_ = 0;
  Poll poll_{*this};
  std::optional<PollScope> polled_;
};

}}  // namespace sar
