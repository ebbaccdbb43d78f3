/// How rows are cut into pieces and messages. Both ends of a link compute the same messages from the same
/// numbers, so that nothing but rows travels. For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>

#include <cstddef>
#include <vector>

namespace sar {

struct MessageCut {
  index row_size = 0;      ///< elements of a row
  index piece_rows = 0;    ///< rows of a piece at most; 0: a whole round
  bool merge = false;      ///< all rounds are one piece (of the receiver; messages are not cut otherwise)
  index max_elements = 1;  ///< elements of a message at most
};

/// Messages of whole rows near `max_bytes` bytes; of a part of a row where one is longer than that.
MessageCut message_cut(index row_size, index piece_rows, bool merge, std::size_t max_bytes);

/// Rows [begin, end) of one round; when merged, of all of them.
struct PieceRange {
  std::size_t round = 0;
  index begin = 0;
  index end = 0;
};

/// The pieces of all rounds in order; a round without rows has none.
std::vector<PieceRange> piece_ranges(const std::vector<index>& rows_of_round, const MessageCut& cut);

/// Elements [begin, end) of one round, counted from its first row.
struct Message {
  std::size_t round = 0;
  index begin = 0;
  index end = 0;
  std::size_t piece = 0;  ///< index into piece_ranges()
  index offset = 0;       ///< where `begin` lies in the piece

  [[nodiscard]] index size() const noexcept { return end - begin; }
};

/// Walks the messages of all rounds in order.
class MessageStream {
 public:
  MessageStream(const std::vector<index>& rows_of_round, const MessageCut& cut);

  [[nodiscard]] bool done() const noexcept { return head_.round == elements_.size(); }
  [[nodiscard]] const Message& head() const noexcept { return head_; }  ///< unless done()
  void pop();
  void skip_round();  ///< the rest of the head's round
  /// Elements of the largest message.
  [[nodiscard]] index largest() const noexcept;

 private:
  void next_piece();
  void settle();

  MessageCut cut_;
  std::vector<index> elements_;  // of each round
  index piece_elements_ = 0;
  Message head_;
};

}  // namespace sar
