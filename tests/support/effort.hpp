// SPDX-License-Identifier: MIT

/// How much work a test does. Tests whose sizes are there for rounding or for memory take smaller ones
/// outside of the full run, and under a sanitizer, which takes ten times as long.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

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

/// For one of several cases, which have numbers from 0 on: all `ways` in the full run, else one, another one
/// for the next case.
template <class Way>
std::vector<Way> some_of(std::vector<Way> ways, std::size_t number) {
  if (full_run()) return ways;
  return {ways.at(number % ways.size())};
}

}  // namespace sar::test
