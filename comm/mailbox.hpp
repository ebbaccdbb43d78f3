/// Inbox and Outbox: the two ends of the links of one exchange. For the sources of comm/ only.
///
/// Messages between two ranks arrive in the order in which they were sent, so that a message needs no name. A
/// rank that gives up sends an empty message in place of the rest of a round, which is how the other end
/// learns of it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/message_ring.hpp>
#include <sar/comm/message_stream.hpp>
#include <sar/core/tensor.hpp>

#include <cstddef>
#include <deque>
#include <vector>

namespace sar {

/// Counts whole pieces while their elements come by in order.
class PieceCounter {
 public:
  PieceCounter(const std::vector<PieceRange>& pieces, index row_size);
  void add(index elements);
  [[nodiscard]] std::size_t whole() const noexcept { return whole_; }
  /// Elements of the piece after these that came by.
  [[nodiscard]] index rest() const noexcept { return rest_; }

 private:
  void settle();

  std::vector<index> elements_;  // of each piece
  std::size_t whole_ = 0;
  index rest_ = 0;
};

/// Receives pieces in order, each into a tensor of its own.
class Inbox {
 public:
  /// `senders[r]` is the peer of round r, `rows_of_round[r]` what it sends, `shape` that of the pieces but
  /// for its rows.
  Inbox(const Communicator& comm, int tag, std::vector<int> senders, const std::vector<index>& rows_of_round,
        const Shape& shape, const MessageCut& cut);

  [[nodiscard]] const std::vector<PieceRange>& pieces() const noexcept { return pieces_; }
  /// Lets the first `pieces` pieces come; their tensors are made when their first receive is posted.
  void allow(std::size_t pieces) { allowed_ = std::min(pieces, pieces_.size()); }
  /// Takes note of what arrived and posts further receives. True when something arrived.
  bool advance();
  /// So many pieces, from the first on, are there.
  [[nodiscard]] std::size_t whole() const noexcept { return arrived_.whole(); }
  /// Whole rows of the piece after these that are there.
  [[nodiscard]] index rest_rows() const noexcept {
    return cut_.row_size > 0 ? arrived_.rest() / cut_.row_size : 0;
  }
  /// The oldest piece that was not taken yet; its rows are there as far as whole() and rest_rows() say.
  [[nodiscard]] Tensor& oldest();
  Tensor take_oldest();
  /// All that was allowed is there.
  [[nodiscard]] bool idle() const noexcept;
  /// A rank that gave up the exchange, or -1.
  [[nodiscard]] int quitter() const noexcept { return quitter_; }

 private:
  Tensor& tensor(std::size_t piece);

  Communicator comm_;
  int tag_;
  std::vector<int> senders_;
  Shape shape_;
  MessageCut cut_;
  std::vector<PieceRange> pieces_;
  MessageStream stream_;
  MessageRing ring_;
  PieceCounter arrived_;
  std::deque<Tensor> tensors_;  // pieces taken_, taken_ + 1, ...
  std::size_t taken_ = 0;
  std::size_t allowed_ = 0;
  std::vector<char> gave_up_;  // of each round: no more will come
  int quitter_ = -1;
};

/// Sends the messages of all rounds in order, a few at a time.
class Outbox {
 public:
  /// `window` messages are under way at most.
  Outbox(const Communicator& comm, int tag, std::vector<int> readers, const std::vector<index>& rows_of_round,
         const MessageCut& cut, std::size_t window);

  /// Takes note of what has left and sends further messages of the first `pieces` pieces. `memory(message,
  /// slot)` says where a message lies; that memory stays as it is until the piece has left or the slot is
  /// named again.
  bool advance(std::size_t pieces, FunctionRef<const real*(const Message& message, std::size_t slot)> memory);
  /// So many pieces, from the first on, have left.
  [[nodiscard]] std::size_t left() const noexcept { return left_.whole(); }
  [[nodiscard]] bool done() const noexcept { return stream_.done() && ring_.empty(); }
  /// From now on, advance() sends an empty message for what is left of each round.
  void give_up() noexcept { giving_up_ = true; }

 private:
  Communicator comm_;
  int tag_;
  std::vector<int> readers_;
  MessageStream stream_;
  MessageRing ring_;
  PieceCounter left_;
  bool giving_up_ = false;
};

}  // namespace sar
