// SPDX-License-Identifier: MIT

/// How much work a test does. Tests whose sizes are there for rounding or for memory take smaller ones
/// outside of the full run, and under a sanitizer, which takes ten times as long.
#pragma once

#include <cstdlib>

namespace sar::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Whether this is the full run: `tests/run.sh --full` sets SAR_FULL_RUN.
inline bool full_run() {
  static const bool full = std::getenv("SAR_FULL_RUN") != nullptr;
  return full;
}

}  // namespace sar::test
