#include <sar/comm/mpi_error.hpp>
#include <sar/comm/rows/mailbox.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>
#include <utility>

namespace sar {
namespace {

// What is under way at most. The receives of a message should be posted before it is announced, or its sender
// waits for the answer, and that behind what this rank sends itself: hence twice as many receives as sends.
// Not so on one node, where it is the receiver who copies: MPI copies all that has been announced and has a
// receive before it returns, and this rank would send nothing meanwhile.
constexpr std::size_t most_sends = 32;
constexpr std::size_t most_receives = 2 * most_sends;
constexpr std::size_t send_window_bytes = 8 * message_bytes;
constexpr std::size_t receive_window_bytes = 2 * send_window_bytes;
constexpr std::size_t node_receive_window_bytes = 2 * message_bytes;

std::size_t send_window(const MessageStream& stream) {
  const auto largest = static_cast<std::size_t>(std::max<Index>(stream.largest(), 1)) * sizeof(real);
  return std::clamp<std::size_t>(send_window_bytes / largest, 1, most_sends);
}

int byte_count(const HaloMessage& message) {
  return static_cast<int>(message.size() * static_cast<Index>(sizeof(real)));
}

}  // namespace

PieceCounter::PieceCounter(const std::vector<PieceRange>& pieces, Index row_size) {
  for (const PieceRange& piece : pieces) elements_.push_back((piece.end - piece.begin) * row_size);
  settle();
}

void PieceCounter::add(Index elements) {
  rest_ += elements;
  settle();
}

void PieceCounter::settle() {
  while (whole_ < elements_.size() && rest_ >= elements_[whole_]) rest_ -= elements_[whole_++];
}

Inbox::Inbox(const Communicator& comm, std::vector<int> senders, const std::vector<Index>& rows_of_round,
             const MessageCut& cut)
    : comm_(comm),
      senders_(std::move(senders)),
      stream_(rows_of_round, cut),
      ring_(most_receives),
      gave_up_(rows_of_round.size(), 0) {}

bool Inbox::advance(int tag, std::size_t pieces, FunctionRef<real*(const HaloMessage&)> memory,
                    FunctionRef<void(const HaloMessage&)> arrived) {
  ring_.test();
  bool moved = false;
  for (; !ring_.empty() && ring_.oldest().complete; ring_.pop(), moved = true) {
    const auto& [message, complete, bytes, posted, completed] = ring_.oldest();
    if (gave_up_[message.round] == 0 && bytes == 0) {
      gave_up_[message.round] = 1;
      quitter_ = senders_[message.round];
      ring_.cancel_round(message.round);
    }
    require<CommunicationError>(
        gave_up_[message.round] != 0 || bytes == static_cast<std::size_t>(byte_count(message)), "rank ",
        senders_[message.round], " sent ", bytes, " bytes where ", byte_count(message), " were expected");
    if (gave_up_[message.round] == 0) comm_.add_to_stats({.bytes_received = bytes});
    trace_event(TraceLane::receive, "receive from", posted, completed, senders_[message.round], 0, bytes);
    posted_bytes_ -= byte_count(message);
    arrived(message);
  }
  for (; !ring_.full() && !stream_.done() && stream_.head().piece < pieces; stream_.pop()) {
    const HaloMessage& message = stream_.head();
    const std::size_t window =
        comm_.on_same_node(senders_[message.round]) ? node_receive_window_bytes : receive_window_bytes;
    if (!ring_.empty() && posted_bytes_ + byte_count(message) > static_cast<Index>(window)) break;
    real* to = memory(message);
    if (to == nullptr) break;
    posted_bytes_ += byte_count(message);
    if (gave_up_[message.round] != 0)
      ring_.start_complete(message);
    else
      check_mpi(MPI_Irecv(to, byte_count(message), MPI_BYTE, senders_[message.round], tag, comm_.handle(),
                          ring_.start(message)),
                "MPI_Irecv");
  }
  return moved;
}

Outbox::Outbox(const Communicator& comm, std::vector<int> readers, const std::vector<Index>& rows_of_round,
               const MessageCut& cut)
    : comm_(comm),
      readers_(std::move(readers)),
      stream_(rows_of_round, cut),
      ring_(send_window(stream_)),
      left_(piece_ranges(rows_of_round, cut), cut.row_size) {}

bool Outbox::advance(int tag, std::size_t pieces,
                     FunctionRef<const real*(const HaloMessage&, std::size_t)> memory) {
  ring_.test();
  bool moved = false;
  for (; !ring_.empty() && ring_.oldest().complete; ring_.pop(), moved = true) {
    const MessageRing::Entry& sent = ring_.oldest();
    trace_event(TraceLane::send, "send to", sent.posted, sent.completed, readers_[sent.message.round],
                static_cast<std::size_t>(byte_count(sent.message)), 0);
    left_.add(sent.message.size());
  }
  while (!ring_.full() && !stream_.done() && (giving_up_ || stream_.head().piece < pieces)) {
    const HaloMessage& message = stream_.head();
    const int reader = readers_[message.round];
    const real* data = giving_up_ ? nullptr : memory(message, ring_.next_slot());
    const int bytes = giving_up_ ? 0 : byte_count(message);
    check_mpi(MPI_Isend(data, bytes, MPI_BYTE, reader, tag, comm_.handle(), ring_.start(message)),
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
