// SPDX-License-Identifier: MIT

/// PacketRing: the packets being received, in the order in which their receives were posted. For the sources
/// of comm/ only.
#pragma once

#include <sar/comm/halo/packets.hpp>
#include <sar/core/memory/workspace.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// A ring buffer of receives.
class PacketRing {
 public:
  struct Entry {
    Packet packet;
    bool complete = false;
    std::size_t bytes = 0;                   ///< bytes received, if complete
    std::int64_t posted = 0, completed = 0;  ///< times of trace_time()
  };

  explicit PacketRing(std::size_t capacity);

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool full() const noexcept { return count_ == entries_.size(); }
  /// Takes the next slot; the caller passes the request to MPI. Must not be full().
  MPI_Request* start(const Packet& packet);
  /// Takes the next slot for a packet that will not arrive. Must not be full().
  void start_complete(const Packet& packet);
  /// Tests all requests. Returns whether any completed.
  bool test();
  /// Returns the oldest packet. Must not be empty().
  [[nodiscard]] const Entry& oldest() const noexcept { return entries_[first_]; }
  void pop();  ///< removes the oldest packet, which must be complete
  /// Cancels the receives of a round whose sender gave up.
  void cancel_round(std::size_t round);

 private:
  PassVector<MPI_Request> requests_;
  PassVector<Entry> entries_;
  PassVector<int> indices_;  // output of MPI_Testsome
  PassVector<MPI_Status> statuses_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}}  // namespace sar
