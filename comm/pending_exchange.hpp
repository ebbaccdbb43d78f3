// SPDX-License-Identifier: MIT

/// The interfaces through which a communicator advances its exchanges in flight (PendingExchange) and sees
/// the RecordedPass that is running (RunningPass). For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// An exchange of messages in flight. Several exchanges of one communicator may be in flight at once, and a
/// rank that only waited for one of them would block the others on its peers. Therefore a rank that waits,
/// for an exchange or at a synchronization point, advances all exchanges of the communicator, and a failing
/// rank gives up all of them.
class PendingExchange : public NonCopyable {
 public:
  struct Progress {
    bool moved = false;
    double work_seconds = 0;  ///< time spent on packing and adding, which does not count as waiting
  };

  /// Returns whether it was begun within `depth` nested calls of Communicator::agree or more, and has not
  /// ended.
  [[nodiscard]] virtual bool under_way_within(int depth) const noexcept = 0;
  /// Advances messages while this rank waits.
  virtual Progress advance_in_wait() = 0;
  /// Unless all messages were sent and received: tells the peers that this rank gives up.
  virtual void give_up_unless_done() noexcept = 0;
  /// Gives up because of the exception being handled; the next wait for this exchange throws it.
  virtual void fail() noexcept = 0;
  /// Ends the exchange in any case: unless it is done, gives up all exchanges of the communicator in flight
  /// (a peer may be waiting for any of them), and completes the requests of this one. Messages of a peer that
  /// has given up count as received.
  virtual void drain() noexcept = 0;

 protected:
  ~PendingExchange() = default;
};

class RunningPass : public NonCopyable {
 public:
  /// Calls of agree() in the pass do not synchronize, and arguments are not compared.
  [[nodiscard]] bool replays() const noexcept { return replays_; }
  /// The ranks are about to do something together that is no recorded exchange: ends the record or the
  /// replay.
  virtual void end_record() noexcept = 0;

 protected:
  ~RunningPass() = default;
  bool replays_ = false;
};

}}  // namespace sar
