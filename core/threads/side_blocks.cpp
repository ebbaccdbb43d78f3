// SPDX-License-Identifier: MIT

// The loops with available blocks are in a list under one mutex. To take a block, a thread advances the
// loop's next element by the grain; with its last block, a loop leaves the list. A thread that has run a
// block decrements to_run with release order, which makes its writes visible to done().
#include <sar/core/threads/side_blocks.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The side loops with available blocks.
struct Offered {
  std::mutex mutex;
  std::vector<SideBlocks*> loops;
  std::atomic<int> count = 0;
};

Offered& offered() {
  static Offered* const all = new Offered;  // outlives the threads
  return *all;
}

}  // namespace

void offer_side_blocks(SideBlocks& blocks) {
  Offered& all = offered();
  const std::scoped_lock lock(all.mutex);
  all.loops.push_back(&blocks);  // first, because it may throw
  blocks.error = nullptr;
  blocks.to_run.store((blocks.n + blocks.grain - 1) / blocks.grain, std::memory_order_relaxed);
  all.count.store(static_cast<int>(all.loops.size()), std::memory_order_relaxed);
}

bool run_side_block(SideBlocks* blocks) noexcept {
  Index begin = 0, end = 0;
  {
    Offered& all = offered();
    const std::scoped_lock lock(all.mutex);
    const auto found =
        blocks == nullptr ? all.loops.begin() : std::find(all.loops.begin(), all.loops.end(), blocks);
    if (found == all.loops.end()) return false;
    blocks = *found;
    begin = blocks->next;
    end = blocks->next = std::min(begin + blocks->grain, blocks->n);
    if (end == blocks->n) {
      all.loops.erase(found);
      all.count.store(static_cast<int>(all.loops.size()), std::memory_order_relaxed);
    }
  }
  try {
    blocks->body(begin, end);
  } catch (...) {
    const std::scoped_lock lock(offered().mutex);
    if (blocks->error == nullptr) blocks->error = std::current_exception();
  }
  blocks->to_run.fetch_sub(1, std::memory_order_release);  // the last access to *blocks
  return true;
}

void withdraw_side_blocks(SideBlocks& blocks) noexcept {
  Offered& all = offered();
  const std::scoped_lock lock(all.mutex);
  const auto found = std::find(all.loops.begin(), all.loops.end(), &blocks);
  if (found == all.loops.end()) return;
  all.loops.erase(found);
  all.count.store(static_cast<int>(all.loops.size()), std::memory_order_relaxed);
  blocks.to_run.fetch_sub((blocks.n - blocks.next + blocks.grain - 1) / blocks.grain,
                          std::memory_order_release);
}

bool side_blocks_offered() noexcept {
  return offered().count.load(std::memory_order_relaxed) > 0;
}

}}  // namespace sar
