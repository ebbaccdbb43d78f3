#include <sar/comm/mailbox.hpp>
#include <sar/comm/mpi_error.hpp>
#include <sar/core/error.hpp>

#include <utility>

namespace sar {
namespace {

constexpr std::size_t receive_window = 64;  // messages whose receives are posted at most

int byte_count(const Message& message) {
  return static_cast<int>(message.size() * static_cast<index>(sizeof(real)));
}

}  // namespace

PieceCounter::PieceCounter(const std::vector<PieceRange>& pieces, index row_size) {
  for (const PieceRange& piece : pieces) elements_.push_back((piece.end - piece.begin) * row_size);
  settle();
}

void PieceCounter::add(index elements) {
  rest_ += elements;
  settle();
}

void PieceCounter::settle() {
  while (whole_ < elements_.size() && rest_ >= elements_[whole_]) rest_ -= elements_[whole_++];
}

Inbox::Inbox(const Communicator& comm, int tag, std::vector<int> senders,
             const std::vector<index>& rows_of_round, const Shape& shape, const MessageCut& cut)
    : comm_(comm),
      tag_(tag),
      senders_(std::move(senders)),
      shape_(shape),
      cut_(cut),
      pieces_(piece_ranges(rows_of_round, cut)),
      stream_(rows_of_round, cut),
      ring_(receive_window),
      arrived_(pieces_, cut.row_size),
      gave_up_(rows_of_round.size(), 0) {}

Tensor& Inbox::tensor(std::size_t piece) {
  while (taken_ + tensors_.size() <= piece) {
    const PieceRange& range = pieces_[taken_ + tensors_.size()];
    tensors_.push_back(Tensor(shape_.with_rows(range.end - range.begin)));
  }
  return tensors_[piece - taken_];
}

bool Inbox::advance() {
  ring_.test();
  bool moved = false;
  for (; !ring_.empty() && ring_.oldest().complete; ring_.pop(), moved = true) {
    const auto& [message, complete, bytes] = ring_.oldest();
    arrived_.add(message.size());
    if (gave_up_[message.round] != 0) continue;
    if (bytes == 0) {
      gave_up_[message.round] = 1;
      quitter_ = senders_[message.round];
      ring_.cancel_round(message.round);
      continue;
    }
    require<CommunicationError>(bytes == static_cast<std::size_t>(byte_count(message)), "rank ",
                                senders_[message.round], " sent ", bytes, " bytes where ",
                                byte_count(message), " were expected");
    comm_.add_to_stats({.bytes_received = bytes});
  }
  for (; !ring_.full() && !stream_.done() && stream_.head().piece < allowed_; stream_.pop()) {
    const Message& message = stream_.head();
    if (gave_up_[message.round] != 0) {
      ring_.start_complete(message);
      continue;
    }
    real* memory = tensor(message.piece).data() + message.offset;
    check_mpi(MPI_Irecv(memory, byte_count(message), MPI_BYTE, senders_[message.round], tag_, comm_.handle(),
                        ring_.start(message)),
              "MPI_Irecv");
  }
  return moved;
}

Tensor& Inbox::oldest() {
  return tensor(taken_);
}

Tensor Inbox::take_oldest() {
  Tensor piece = std::move(oldest());
  tensors_.pop_front();
  ++taken_;
  return piece;
}

bool Inbox::idle() const noexcept {
  return ring_.empty() && (stream_.done() || stream_.head().piece >= allowed_);
}

Outbox::Outbox(const Communicator& comm, int tag, std::vector<int> readers,
               const std::vector<index>& rows_of_round, const MessageCut& cut, std::size_t window)
    : comm_(comm),
      tag_(tag),
      readers_(std::move(readers)),
      stream_(rows_of_round, cut),
      ring_(window),
      left_(piece_ranges(rows_of_round, cut), cut.row_size) {}

bool Outbox::advance(std::size_t pieces, FunctionRef<const real*(const Message&, std::size_t)> memory) {
  ring_.test();
  bool moved = false;
  for (; !ring_.empty() && ring_.oldest().complete; ring_.pop(), moved = true)
    left_.add(ring_.oldest().message.size());
  while (!ring_.full() && !stream_.done() && (giving_up_ || stream_.head().piece < pieces)) {
    const Message& message = stream_.head();
    const int reader = readers_[message.round];
    const real* data = giving_up_ ? nullptr : memory(message, ring_.next_slot());
    const int bytes = giving_up_ ? 0 : byte_count(message);
    check_mpi(MPI_Isend(data, bytes, MPI_BYTE, reader, tag_, comm_.handle(), ring_.start(message)),
              "MPI_Isend");
    comm_.add_to_stats({.bytes_sent = static_cast<std::uint64_t>(bytes)});
    if (giving_up_)
      stream_.skip_round();
    else
      stream_.pop();
    moved = true;
  }
  return moved;
}

}  // namespace sar
