// SPDX-License-Identifier: MIT

// A ring buffer: receives are posted at its end and reported from its beginning, in whatever order they
// complete. test() is one MPI_Testsome over all slots.
#include <sar/comm/halo/packet_ring.hpp>
#include <sar/comm/mpi_error.hpp>
#include <sar/core/trace/trace_events.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

PacketRing::PacketRing(std::size_t capacity)
    : requests_(std::max<std::size_t>(capacity, 1), MPI_REQUEST_NULL),
      entries_(requests_.size()),
      indices_(requests_.size()),
      statuses_(requests_.size()) {}

MPI_Request* PacketRing::start(const Packet& packet) {
  const std::size_t slot = (first_ + count_) % entries_.size();
  entries_[slot] = {.packet = packet, .posted = trace_time()};
  ++count_;
  return &requests_[slot];
}

void PacketRing::start_complete(const Packet& packet) {
  start(packet);
  entries_[(first_ + count_ - 1) % entries_.size()].complete = true;
}

bool PacketRing::test() {
  if (count_ == 0) return false;
  int completed = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed,
                                indices_.data(), statuses_.data());
  if (completed == MPI_UNDEFINED) return false;
  for (int i = 0; i < completed; ++i) {
    const MPI_Status& status = statuses_[i];
    if (code == MPI_ERR_IN_STATUS) check_mpi(status.MPI_ERROR, "a message between two ranks");
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Entry& entry = entries_[indices_[i]];
    entry.complete = true;
    entry.completed = trace_time();
    entry.bytes = static_cast<std::size_t>(std::max(bytes, 0));
  }
  check_mpi(code, "MPI_Testsome");
  return completed > 0;
}

void PacketRing::pop() {
  first_ = (first_ + 1) % entries_.size();
  --count_;
}

void PacketRing::cancel_round(std::size_t round) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t slot = (first_ + k) % entries_.size();
    if (entries_[slot].packet.round == round && requests_[slot] != MPI_REQUEST_NULL)
      check_mpi(MPI_Cancel(&requests_[slot]), "MPI_Cancel");
  }
}

}}  // namespace sar
