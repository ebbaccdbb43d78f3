/// How rows are cut into pieces and messages. Both ends of a link compute the same messages from the same
/// numbers, so that nothing but rows travels. For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <vector>

namespace sar {

struct MessageCut {
  Index row_size = 0;      ///< elements of a row
  Index piece_rows = 0;    ///< rows of a piece at most; 0: a whole round
  bool merge = false;      ///< all rounds are one piece (of the receiver; messages are not cut otherwise)
  Index max_elements = 1;  ///< elements of a message at most
};

/// Messages of whole rows near `max_bytes` bytes; of a part of a row where one is longer than that.
MessageCut message_cut(Index row_size, Index piece_rows, bool merge, std::size_t max_bytes);

/// Rows [begin, end) of one round; when merged, of all of them.
struct PieceRange {
  std::size_t round = 0;
  Index begin = 0;
  Index end = 0;
};

/// The pieces of all rounds in order; a round without rows has none.
std::vector<PieceRange> piece_ranges(const std::vector<Index>& rows_of_round, const MessageCut& cut);

/// Elements [begin, end) of one round, counted from its first row.
struct HaloMessage {
  std::size_t round = 0;
  Index begin = 0;
  Index end = 0;
  std::size_t piece = 0;  ///< index into piece_ranges()
  Index offset = 0;       ///< where `begin` lies in the piece

  [[nodiscard]] Index size() const noexcept { return end - begin; }
};

/// Walks the messages of all rounds in order.
class MessageStream {
 public:
  MessageStream(const std::vector<Index>& rows_of_round, const MessageCut& cut);

  [[nodiscard]] bool done() const noexcept { return head_.round == elements_.size(); }
  [[nodiscard]] const HaloMessage& head() const noexcept { return head_; }  ///< unless done()
  void pop();
  void skip_round();  ///< the rest of the head's round
  /// Elements of the largest message.
  [[nodiscard]] Index largest() const noexcept;

 private:
  void next_piece();
  void settle();

  MessageCut cut_;
  std::vector<Index> elements_;  // of each round
  Index piece_elements_ = 0;
  HaloMessage head_;
};

}  // namespace sar
