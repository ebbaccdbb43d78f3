#include <sar/comm/rows/packets.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {

Packets::Packets(const std::vector<HaloStage>& stages, const std::vector<Index>& rows_of_round,
                 Index row_size, const WireFormat& wire, std::size_t max_bytes)
    : num_stages_(stages.size()) {
  Index most = std::max<Index>(static_cast<Index>(max_bytes) / wire.bytes(1), 1);
  most = std::max(most - most % wire.group(), wire.group());
  if (row_size > 0 && row_size <= most) most -= most % row_size;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const HaloStage& stage = stages[s];
    Index offset = 0;
    for (std::size_t round = stage.round; round < stage.round + stage.num_rounds; ++round) {
      const bool whole = stage.num_rounds > 1;
      const Index end = (whole ? rows_of_round[round] : stage.end) * row_size;
      for (Index begin = (whole ? 0 : stage.begin) * row_size; begin < end; begin += most) {
        const Index size = std::min(most, end - begin);
        packets_.push_back(
            {.round = round, .stage = s, .begin = begin, .end = begin + size, .offset = offset});
        offset += size;
      }
    }
  }
}

Index Packets::largest() const noexcept {
  Index most = 0;
  for (const Packet& packet : packets_) most = std::max(most, packet.size());
  return most;
}

}  // namespace sar
