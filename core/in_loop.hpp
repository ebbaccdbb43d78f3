/// InLoop: whether a thread is in a block of a parallel loop, where the order of things is left to chance.
/// For implementation files.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

/// While alive, its thread is in a loop.
class InLoop {
 public:
  InLoop() noexcept;
  ~InLoop();
  InLoop(const InLoop&) = delete;
  InLoop& operator=(const InLoop&) = delete;

  /// Whether one is alive on this thread.
  [[nodiscard]] static bool here() noexcept;
};

}  // namespace sar
