// SPDX-License-Identifier: MIT

/// SideLoop: a loop that runs concurrently with other parallel loops. Every thread of a parallel loop runs
/// one block of a side loop after each block of its own. This way all threads pack rows while a kernel runs,
/// and the communicating thread does not wait for packing. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <functional>
#include <memory>

namespace sar { inline namespace SAR_PRECISION {

struct SideBlocks;

class SideLoop {
 public:
  SideLoop();
  ~SideLoop();  ///< drops the blocks that no thread has taken and waits for the running ones
  SideLoop(SideLoop&&) noexcept;
  SideLoop& operator=(SideLoop&&) = delete;

  /// Starts the loop: calls body(begin, end) for each block of `grain` elements of [0, n), on any thread. The
  /// body must not run loops. The previous loop must be done.
  void start(Index n, Index grain, std::function<void(Index begin, Index end)> body);
  /// Returns whether all blocks have run and their writes are visible; true before the first start().
  [[nodiscard]] bool done() const noexcept;
  /// Runs the remaining blocks on all threads. Call it when no other loop runs.
  void finish();
  /// Rethrows the first exception of the body. Call it when done().
  void check() const;

 private:
  std::unique_ptr<SideBlocks> blocks_;  // null before the first start()
};

}}  // namespace sar
