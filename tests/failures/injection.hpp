// SPDX-License-Identifier: MIT

/// Allocations that fail on purpose: operator new and the accounted memory of this program.
#pragma once

#include <cstdint>

namespace sar::test {

/// While alive, the allocations of this thread are counted, and the one of the given number throws. Others of
/// MPI and oneTBB pass neither operator new nor the account.
class FailingAllocation {
 public:
  /// The first is number 1; 0: none fails.
  explicit FailingAllocation(std::int64_t number) noexcept;
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  [[nodiscard]] std::int64_t count() const noexcept;
};

}  // namespace sar::test
