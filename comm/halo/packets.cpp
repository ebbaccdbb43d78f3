// SPDX-License-Identifier: MIT

// The rows of a round are divided at the boundaries of its reader's stages, and these parts into packets
// of whole rows (or of whole groups of the format, if a row is longer than a packet). Sorting n packets by
// stage, round and position takes O(n log n) time. No message is needed: stage_rows, the range and the
// format are the same at both ends.
#include <sar/comm/halo/packets.hpp>

#include <algorithm>
#include <tuple>

namespace sar { inline namespace SAR_PRECISION {

Packets::Packets(std::span<const HaloRange> ranges, Index stage_rows, Index row_size,
                 const WireFormat& wire, std::size_t max_bytes) {
  const Index group = wire.group();
  Index most = std::max<Index>(static_cast<Index>(max_bytes) / wire.bytes(group), 1) * group;
  if (row_size > 0 && row_size <= most) most -= most % row_size;
  for (std::size_t round = 0; round < ranges.size(); ++round) {
    const auto [first, rows] = ranges[round];
    for (Index row = 0; row < rows;) {
      const Index stage = (first + row) / stage_rows;
      const Index end_row = std::min(row + stage_rows - (first + row) % stage_rows, rows);
      num_stages_ = std::max(num_stages_, static_cast<std::size_t>(stage) + 1);
      const Index stage_begin =
          (stage * stage_rows - first) * row_size;  // counted from the round's first row
      for (Index begin = row * row_size; begin < end_row * row_size; begin += most)
        packets_.push_back({.round = round,
                            .stage = static_cast<std::size_t>(stage),
                            .begin = begin,
                            .end = std::min(begin + most, end_row * row_size),
                            .offset = begin - stage_begin});
      row = end_row;
    }
  }
  // not std::stable_sort, which allocates
  std::ranges::sort(packets_, {}, [](const Packet& p) { return std::tuple(p.stage, p.round, p.begin); });
}

Index Packets::largest() const noexcept {
  Index most = 0;
  for (const Packet& packet : packets_) most = std::max(most, packet.size());
  return most;
}

}}  // namespace sar
