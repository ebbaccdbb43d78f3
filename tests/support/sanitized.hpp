/// Whether a sanitizer watches the program. The same code takes ten times as long then: tests whose sizes are
/// there for rounding or for memory take smaller ones.
#pragma once

namespace sar::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace sar::test
