/// PacketRing: the packets that are being received, in the order in which their receives were posted. For the
/// sources of comm/ only.
#pragma once

#include <sar/comm/rows/packets.hpp>
#include <sar/core/workspace.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace sar::inline SAR_PRECISION {

class PacketRing {
 public:
  struct Entry {
    Packet packet;
    bool complete = false;
    std::size_t bytes = 0;                   ///< of a complete receive: what arrived
    std::int64_t posted = 0, completed = 0;  ///< of trace_time()
  };

  explicit PacketRing(std::size_t capacity);

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool full() const noexcept { return count_ == entries_.size(); }
  /// Takes the next slot; the caller gives the request to MPI. Unless full().
  MPI_Request* start(const Packet& packet);
  /// Takes the next slot for a packet that will not come. Unless full().
  void start_complete(const Packet& packet);
  /// Looks which requests are complete. True when some are that were not.
  bool test();
  /// The oldest packet; unless empty().
  [[nodiscard]] const Entry& oldest() const noexcept { return entries_[first_]; }
  void pop();  ///< forgets the oldest packet, which is complete
  /// Cancels the receives of a round whose sender gave up.
  void cancel_round(std::size_t round);

 private:
  PassVector<MPI_Request> requests_;
  PassVector<Entry> entries_;
  PassVector<int> indices_;  // what MPI_Testsome reports
  PassVector<MPI_Status> statuses_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace sar
