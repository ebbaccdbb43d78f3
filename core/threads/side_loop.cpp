// SPDX-License-Identifier: MIT
#include <sar/core/threads/parallel.hpp>
#include <sar/core/threads/side_blocks.hpp>
#include <sar/core/threads/side_loop.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

SideLoop::SideLoop() = default;
SideLoop::SideLoop(SideLoop&&) noexcept = default;
SideLoop::~SideLoop() {
  if (blocks_ == nullptr) return;
  withdraw_side_blocks(*blocks_);
  while (!done()) std::this_thread::yield();
}

void SideLoop::start(Index n, Index grain, std::function<void(Index, Index)> body) {
  if (n <= 0) return;
  if (blocks_ == nullptr) blocks_ = std::make_unique<SideBlocks>();
  blocks_->body = std::move(body);
  blocks_->n = n;
  blocks_->grain = std::max<Index>(grain, 1);
  blocks_->next = 0;
  offer_side_blocks(*blocks_);
}

bool SideLoop::done() const noexcept {
  return blocks_ == nullptr || blocks_->to_run.load(std::memory_order_acquire) == 0;
}

// The loop starts as many runs as blocks are unfinished; a run that finds no block returns at once.
void SideLoop::finish() {
  if (done()) return;
  parallel_for(blocks_->to_run.load(std::memory_order_relaxed), 1,
               [&](Index, Index) { (void)run_side_block(blocks_.get()); });
  while (!done()) std::this_thread::yield();
}

void SideLoop::check() const {
  if (blocks_ != nullptr && blocks_->error != nullptr) std::rethrow_exception(blocks_->error);
}

}}  // namespace sar
