// SPDX-License-Identifier: MIT

/// InLoop: marks that a thread runs a block of a parallel loop, where the execution order is not
/// deterministic. For implementation files.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Marks the current thread as being inside a loop during its lifetime.
class InLoop : NonCopyable {
 public:
  InLoop() noexcept;
  ~InLoop();

  /// Returns whether this thread is inside a loop.
  [[nodiscard]] static bool here() noexcept;
};

}}  // namespace sar
