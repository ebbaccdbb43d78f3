/// Inbox and Outbox: the two ends of the links of one exchange. For the sources of comm/ only.
///
/// Messages between two ranks arrive in the order in which they were sent, so that a message needs no name. A
/// rank that gives up sends an empty message in place of the rest of a round, which is how the other end
/// learns of it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/message_ring.hpp>
#include <sar/comm/rows/message_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sar {

/// A message is about so large: short enough to stay in the cache between packing and sending, and between
/// arrival and addition; long enough for the handshake of a large message not to count.
inline constexpr std::size_t message_bytes = std::size_t{1} << 19;

/// Counts whole pieces while their elements come by in order.
class PieceCounter {
 public:
  PieceCounter(const std::vector<PieceRange>& pieces, Index row_size);
  void add(Index elements);
  [[nodiscard]] std::size_t whole() const noexcept { return whole_; }
  [[nodiscard]] bool all() const noexcept { return whole_ == elements_.size(); }

 private:
  void settle();

  std::vector<Index> elements_;  // of each piece
  std::size_t whole_ = 0;
  Index rest_ = 0;
};

/// Receives the messages of all rounds in order, a few at a time.
class Inbox {
 public:
  /// `senders[r]` is the peer of round r, which sends `rows_of_round[r]` rows.
  Inbox(const Communicator& comm, std::vector<int> senders, const std::vector<Index>& rows_of_round,
        const MessageCut& cut);

  /// Hands over what has arrived, in order, and posts receives for further messages of the first `pieces`
  /// pieces. `memory(message)` says where a message shall lie (null: not yet), `arrived(message)`, which does
  /// not throw, that it is there (after a rank gave up: that it never will be). True when something arrived.
  bool advance(int tag, std::size_t pieces, FunctionRef<real*(const HaloMessage& message)> memory,
               FunctionRef<void(const HaloMessage& message)> arrived);
  /// No receive is under way.
  [[nodiscard]] bool idle() const noexcept { return ring_.empty(); }
  /// Everything was handed over.
  [[nodiscard]] bool done() const noexcept { return stream_.done() && ring_.empty(); }
  /// A rank that gave up the exchange, or -1.
  [[nodiscard]] int failed_peer() const noexcept { return quitter_; }

 private:
  Communicator comm_;
  std::vector<int> senders_;
  MessageStream stream_;
  MessageRing ring_;
  Index posted_bytes_ = 0;
  std::vector<char> gave_up_;  // of each round: no more will come
  int quitter_ = -1;
};

/// Sends the messages of all rounds in order, a few at a time.
class Outbox {
 public:
  Outbox(const Communicator& comm, std::vector<int> readers, const std::vector<Index>& rows_of_round,
         const MessageCut& cut);

  /// So many messages are under way at most, each in a slot of its own.
  [[nodiscard]] std::size_t window() const noexcept { return ring_.capacity(); }
  /// Takes note of what has left and sends further messages of the first `pieces` pieces. `memory(message,
  /// slot)` says where a message lies; that memory stays as it is until the piece has left or the slot is
  /// named again.
  bool advance(int tag, std::size_t pieces,
               FunctionRef<const real*(const HaloMessage& message, std::size_t slot)> memory);
  /// So many pieces, from the first on, have left.
  [[nodiscard]] std::size_t left() const noexcept { return left_.whole(); }
  [[nodiscard]] bool done() const noexcept { return stream_.done() && ring_.empty(); }
  /// From now on, advance() sends an empty message for what is left of each round.
  void give_up() noexcept { giving_up_ = true; }

 private:
  Communicator comm_;
  std::vector<int> readers_;
  MessageStream stream_;
  MessageRing ring_;
  PieceCounter left_;
  bool giving_up_ = false;
};

}  // namespace sar
