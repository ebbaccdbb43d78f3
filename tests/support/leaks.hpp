// SPDX-License-Identifier: MIT

/// Memory that nothing refers to any more, as the leak detector of the address sanitizer finds it. Without
/// that sanitizer, none is found.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace sar::test {

#if defined(__SANITIZE_ADDRESS__)
/// Whether memory that is allocated from now on counts.
inline void count_leaks(bool count) {
  count ? __lsan_enable() : __lsan_disable();
}
/// Reports leaks on stderr; true when there are any. Call it before MPI_Finalize, which unloads plugins:
/// their leaks have no names afterwards and could not be suppressed.
inline bool has_leaks() {
  return __lsan_do_recoverable_leak_check() != 0;
}
#else
inline void count_leaks(bool) {}
inline bool has_leaks() {
  return false;
}
#endif

}  // namespace sar::test
