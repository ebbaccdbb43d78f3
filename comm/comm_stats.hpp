/// What communication costs a rank.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// What this rank sent and received, and how long it waited. The few bytes of synchronization points are not
/// in it.
struct CommStats {
  /// Payload of messages to other ranks; of a collective call, what this rank contributes.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;  ///< payload of messages from other ranks
  double wait_seconds = 0;           ///< blocked in communication; overlapped communication does not count
};

}  // namespace sar
