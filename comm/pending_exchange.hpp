/// PendingExchange: an exchange of messages under way, as its communicator sees it. For the sources of comm/
/// only.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

/// Two exchanges of one communicator may be under way together, and a rank that waits for one of them would
/// stop the other one on its peers. So a rank that waits moves all exchanges of the communicator on, and a
/// rank that fails gives up all of them.
class PendingExchange {
 public:
  struct Progress {
    bool moved = false;
    double work_seconds = 0;  ///< spent on packing and adding: not time that this rank waited
  };

  /// It has begun in a body of Communicator::agree and has not ended.
  [[nodiscard]] virtual bool under_way_in_agree() const noexcept = 0;
  /// Moves messages on while this rank waits.
  virtual Progress advance_in_wait() = 0;
  /// Unless all messages have been sent and received: tells the peers that no more will come.
  virtual void give_up_unless_done() noexcept = 0;
  /// Ends the exchange whatever has happened: unless it is done, gives up all exchanges of the communicator
  /// that are under way, since a peer may wait for any of them first, and completes the requests of this one.
  /// The messages of a peer that has given up count as received.
  virtual void drain() noexcept = 0;

 protected:
  ~PendingExchange() = default;
};

}  // namespace sar
