/// Memory that nothing refers to any more, as the address sanitizer's leak detector finds it. Without that
/// sanitizer, there is none to find.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace sar::test {

#if defined(__SANITIZE_ADDRESS__)
/// Whether blocks that are taken from now on count.
inline void count_leaks(bool count) {
  count ? __lsan_enable() : __lsan_disable();
}
/// Reports leaks on stderr; true when there are any. Before MPI_Finalize, which unloads plugins whose blocks
/// then have no name that could be suppressed.
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
