/// SideLoop: a loop that runs beside others. Whoever takes part in a parallel loop takes a block of a side
/// loop after each block of its own. So rows are packed by all threads while a kernel runs, and the thread
/// that communicates waits for none of them. For implementation files.
#pragma once

#include <sar/config.hpp>

#include <functional>
#include <memory>

namespace sar::inline SAR_PRECISION {

struct SideBlocks;

class SideLoop {
 public:
  SideLoop();
  ~SideLoop();  ///< forgets the blocks that nobody has taken, and waits for the others
  SideLoop(SideLoop&&) noexcept;
  SideLoop& operator=(SideLoop&&) = delete;

  /// From now on body(begin, end) is called for the blocks of `grain` elements of [0, n), on any thread. It
  /// runs no loops. Not before the last one is done.
  void start(Index n, Index grain, std::function<void(Index begin, Index end)> body);
  /// All blocks have run, and what they wrote can be read; so before the first start().
  [[nodiscard]] bool done() const noexcept;
  /// Runs what is left on all threads, when no other loop runs.
  void finish();
  /// Throws what the body threw first. When done.
  void check() const;

 private:
  std::unique_ptr<SideBlocks> blocks_;  // null before the first start()
};

}  // namespace sar
