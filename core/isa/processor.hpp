// SPDX-License-Identifier: MIT

/// Detects which instructions the processor and the operating system support. For implementation files.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// x86-64 features, grouped by the levels of the ABI; all false on other architectures.
struct Processor {
  bool x86_64_v2 = false;
  bool x86_64_v3 = false;
  bool x86_64_v4 = false;
  bool avx512_bf16 = false;
  /// avx512_bf16, and VDPBF16PS does more multiplications in a second than fused multiply-adds of single
  /// precision. Of Intel's processors since Sapphire Rapids, which have AMX for this, it does half as many.
  bool fast_avx512_bf16 = false;
  bool amx_bf16 = false;  ///< AMX-TILE and AMX-BF16, plus AVX512-BF16 for conversions
};

/// Returns the features of this machine, read from CPUID and XCR0.
[[nodiscard]] Processor this_processor() noexcept;

/// Requests permission to use AMX tiles. Linux grants it only on request, because signal frames become
/// larger. Returns whether it was granted.
[[nodiscard]] bool ask_for_tiles() noexcept;

}}  // namespace sar
