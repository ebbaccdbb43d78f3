/// What this processor and the operating system let a process use. For implementation files.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

/// Features of x86-64 by the levels of its ABI; all false elsewhere.
struct Processor {
  bool x86_64_v2 = false;
  bool x86_64_v3 = false;
  bool x86_64_v4 = false;
  bool avx512_bf16 = false;
  bool amx_bf16 = false;  ///< AMX-TILE, AMX-BF16, and AVX512-BF16 to convert for them
};

/// Reads CPUID and XCR0.
[[nodiscard]] Processor this_processor() noexcept;

/// Linux gives tiles only to processes that ask, since frames of their signals are larger from then on.
/// Returns whether it has.
[[nodiscard]] bool ask_for_tiles() noexcept;

}  // namespace sar
