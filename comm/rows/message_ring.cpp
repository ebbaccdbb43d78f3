#include <sar/comm/mpi_error.hpp>
#include <sar/comm/rows/message_ring.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>

namespace sar {

MessageRing::MessageRing(std::size_t capacity)
    : requests_(std::max<std::size_t>(capacity, 1), MPI_REQUEST_NULL),
      entries_(requests_.size()),
      indices_(requests_.size()),
      statuses_(requests_.size()) {}

MPI_Request* MessageRing::start(const HaloMessage& message) {
  const std::size_t slot = next_slot();
  entries_[slot] = {.message = message, .posted = trace_time()};
  ++count_;
  return &requests_[slot];
}

void MessageRing::start_complete(const HaloMessage& message) {
  start(message);
  entries_[(first_ + count_ - 1) % entries_.size()].complete = true;
}

bool MessageRing::test() {
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

void MessageRing::pop() {
  first_ = (first_ + 1) % entries_.size();
  --count_;
}

void MessageRing::cancel_round(std::size_t round) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t slot = (first_ + k) % entries_.size();
    if (entries_[slot].message.round == round && requests_[slot] != MPI_REQUEST_NULL)
      check_mpi(MPI_Cancel(&requests_[slot]), "MPI_Cancel");
  }
}

}  // namespace sar
