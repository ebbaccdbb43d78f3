#include <sar/comm/rows/halo.hpp>
#include <sar/comm/rows/message_stream.hpp>

#include <algorithm>
#include <numeric>

namespace sar {

std::vector<Index> piece_bounds(Index rows, Index piece_rows) {
  const Index step = piece_rows > 0 ? piece_rows : std::max<Index>(rows, 1);
  std::vector<Index> bounds{0};
  while (bounds.back() < rows) bounds.push_back(bounds.back() + std::min(step, rows - bounds.back()));
  return bounds;
}

MessageCut message_cut(Index row_size, Index piece_rows, bool merge, std::size_t max_bytes) {
  Index max_elements = std::max<Index>(static_cast<Index>(max_bytes / sizeof(real)), 1);
  if (row_size > 0 && row_size <= max_elements) max_elements -= max_elements % row_size;
  return {.row_size = row_size,
          .piece_rows = merge ? 0 : piece_rows,
          .merge = merge,
          .max_elements = max_elements};
}

std::vector<PieceRange> piece_ranges(const std::vector<Index>& rows_of_round, const MessageCut& cut) {
  std::vector<PieceRange> pieces;
  if (cut.merge) {
    const Index rows = std::accumulate(rows_of_round.begin(), rows_of_round.end(), Index{0});
    if (rows > 0) pieces.push_back({0, 0, rows});
    return pieces;
  }
  for (std::size_t round = 0; round < rows_of_round.size(); ++round) {
    const std::vector<Index> bounds = piece_bounds(rows_of_round[round], cut.piece_rows);
    for (std::size_t k = 1; k < bounds.size(); ++k) pieces.push_back({round, bounds[k - 1], bounds[k]});
  }
  return pieces;
}

MessageStream::MessageStream(const std::vector<Index>& rows_of_round, const MessageCut& cut) : cut_(cut) {
  Index most_rows = 1;
  for (const Index rows : rows_of_round) {
    most_rows = std::max(most_rows, rows);
    elements_.push_back(rows * cut.row_size);
  }
  piece_elements_ = (cut.piece_rows > 0 ? std::min(cut.piece_rows, most_rows) : most_rows) * cut.row_size;
  settle();
}

void MessageStream::next_piece() {
  if (cut_.merge) return;
  ++head_.piece;
  head_.offset = 0;
}

void MessageStream::settle() {
  while (head_.round < elements_.size() && head_.begin == elements_[head_.round]) {
    if (head_.offset > 0) next_piece();
    ++head_.round;
    head_.begin = 0;
  }
  if (done()) return;
  Index length = std::min(elements_[head_.round] - head_.begin, cut_.max_elements);
  if (!cut_.merge) length = std::min(length, piece_elements_ - head_.offset);
  head_.end = head_.begin + length;
}

void MessageStream::pop() {
  head_.offset += head_.size();
  head_.begin = head_.end;
  if (head_.offset == piece_elements_) next_piece();
  settle();
}

void MessageStream::skip_round() {
  const std::size_t round = head_.round;
  while (!done() && head_.round == round) pop();
}

Index MessageStream::largest() const noexcept {
  Index most = 0;
  for (const Index elements : elements_) most = std::max(most, elements);
  if (!cut_.merge) most = std::min(most, piece_elements_);
  return std::min(most, cut_.max_elements);
}

}  // namespace sar
