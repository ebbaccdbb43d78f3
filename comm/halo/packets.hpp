// SPDX-License-Identifier: MIT

/// The division of stages into packets, the messages of MPI. Both ends of a link compute the same packets
/// from the same numbers, so messages contain rows only. For the sources of comm/ only.
#pragma once

#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/memory/workspace.hpp>

#include <cstddef>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Values [begin, end) of one round, counted from its first row.
struct Packet {
  std::size_t round = 0;
  std::size_t stage = 0;  ///< stage of the reader
  Index begin = 0;
  Index end = 0;
  Index offset = 0;  ///< position of `begin` in the stage

  [[nodiscard]] Index size() const noexcept { return end - begin; }
  bool operator==(const Packet&) const = default;
};

/// The rows of a round in the halo of their reader.
struct HaloRange {
  Index first = 0;
  Index rows = 0;
};

/// The packets of one direction of an exchange.
class Packets {
 public:
  /// Builds the packets of all stages in order, within a stage in the order of the rounds. A packet has whole
  /// rows of about `max_bytes` bytes, or a part of a longer row. `ranges` has one entry per round.
  Packets(std::span<const HaloRange> ranges, Index stage_rows, Index row_size, const WireFormat& wire,
          std::size_t max_bytes);

  [[nodiscard]] std::size_t size() const noexcept { return packets_.size(); }
  [[nodiscard]] const Packet& operator[](std::size_t i) const noexcept { return packets_[i]; }
  /// Returns the number of stages in which any of these rounds has rows.
  [[nodiscard]] std::size_t num_stages() const noexcept { return num_stages_; }
  /// Returns the number of stages that are complete with the first `count` packets.
  [[nodiscard]] std::size_t complete_stages(std::size_t count) const noexcept {
    return count < packets_.size() ? packets_[count].stage : num_stages_;
  }
  /// Returns the number of values of the largest packet.
  [[nodiscard]] Index largest() const noexcept;

 private:
  PassVector<Packet> packets_;
  std::size_t num_stages_ = 0;
};

}}  // namespace sar
