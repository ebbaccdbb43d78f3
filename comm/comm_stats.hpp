// SPDX-License-Identifier: MIT

/// The communication volume and waiting time of a rank.
#pragma once

#include <sar/config.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// The bytes that this rank sent and received, and how long it waited. Synchronization points and the
/// counts of all_to_all are not counted.
struct CommStats {
  /// Payload of messages to other ranks; for a collective call, this rank's contribution.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;  ///< payload of messages from other ranks
  double wait_seconds = 0;           ///< time blocked in communication, without overlapped communication
};

}}  // namespace sar
