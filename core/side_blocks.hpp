/// SideBlocks: the blocks of side loops (side_loop.hpp) that nobody has taken yet, for whoever has a moment.
/// For implementation files.
#pragma once

#include <sar/config.hpp>

#include <atomic>
#include <exception>
#include <functional>

namespace sar::inline SAR_PRECISION {

struct SideBlocks {
  std::function<void(Index begin, Index end)> body;
  Index n = 0, grain = 1;
  Index next = 0;                 ///< first element of the blocks that nobody has taken; changes under a lock
  std::atomic<Index> to_run = 0;  ///< blocks that have not run
  std::exception_ptr error;       ///< what a block threw first; changes under a lock, final when to_run is 0
};

/// From now on any thread may take blocks of these, until all have run.
void offer_side_blocks(SideBlocks& blocks);
/// Takes back those that nobody has taken; others may be running still.
void withdraw_side_blocks(SideBlocks& blocks) noexcept;
/// Takes a block of these, or of any when null, and runs it. False when there is none.
bool run_side_block(SideBlocks* blocks) noexcept;
/// Whether there may be some to take: costs nothing.
bool side_blocks_offered() noexcept;

}  // namespace sar
