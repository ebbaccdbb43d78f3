// SPDX-License-Identifier: MIT

// The rows are sorted by their position at the owner, O(n log n). Then one pass joins rows with gaps of at
// most 4 KiB to ranges, as many as fit one message. Bytes moved per row: received in the buffer with the
// gaps, then copied to its place.
#include <sar/comm/rows/row_pull.hpp>
#include <sar/comm/rows/scattered_rows.hpp>

#include <algorithm>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

ScatteredRows::ScatteredRows(int owner, std::span<const Index> rows, std::span<const Index> places)
    : owner_(owner), wanted_(rows.size()) {
  for (Index k = 0; k < std::ssize(wanted_); ++k) wanted_[k] = {rows[k], places[k]};
  if (!std::ranges::is_sorted(wanted_, {}, &Wanted::row)) std::ranges::sort(wanted_, {}, &Wanted::row);
}

Index ScatteredRows::get(const RowWindow& window, Index row_bytes, Index most) {
  constexpr Index near_bytes = Index{1} << 12;
  const Index gap = near_bytes / row_bytes;
  std::vector<RowRange> ranges;
  Index held = 0;
  from_.clear();
  // Rows at most `gap` behind the previous range extend it; the rows between are read and ignored.
  for (first_ = next_; !done(); ++next_) {
    const Index row = wanted_[next_].row;
    const bool near = held > 0 && row <= ranges.back().last + gap;
    const Index more = near ? std::max<Index>(0, row + 1 - ranges.back().last) : 1;
    if (held > 0 && held + more > most) break;
    held += more;
    if (near)
      ranges.back().last += more;
    else
      ranges.push_back({row, row + 1});
    from_.push_back(held - 1);
  }
  buffer_.resize(static_cast<std::size_t>(held * row_bytes));
  window.get(owner_, ranges, row_bytes, buffer_.data());
  return held;
}

void ScatteredRows::copy_to(std::byte* out, Index row_bytes) const {
  copy_rows(
      std::ssize(from_), row_bytes, buffer_.data(), [&](Index k) { return from_[k]; }, out,
      [&](Index k) { return wanted_[first_ + k].place; });
}

}}  // namespace sar
