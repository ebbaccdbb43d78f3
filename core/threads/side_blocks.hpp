// SPDX-License-Identifier: MIT

/// SideBlocks: the blocks of side loops (side_loop.hpp) that no thread has started yet, which any idle thread
/// takes. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <atomic>
#include <exception>
#include <functional>

namespace sar { inline namespace SAR_PRECISION {

struct SideBlocks {
  std::function<void(Index begin, Index end)> body;
  Index n = 0, grain = 1;
  Index next = 0;                 ///< first element not taken yet; guarded by a mutex
  std::atomic<Index> to_run = 0;  ///< blocks that have not finished
  std::exception_ptr error;       ///< first exception of a block; guarded by a mutex, final when to_run is 0
};

/// Makes the blocks available to all threads until all have run.
void offer_side_blocks(SideBlocks& blocks);
/// Withdraws the blocks that no thread has taken; others may still be running.
void withdraw_side_blocks(SideBlocks& blocks) noexcept;
/// Runs one block of `blocks`, or of any side loop if null. Returns false if there is none.
bool run_side_block(SideBlocks* blocks) noexcept;
/// Returns whether blocks may be available. Cheap: one relaxed load.
bool side_blocks_offered() noexcept;

}}  // namespace sar
