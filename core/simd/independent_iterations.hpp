// SPDX-License-Identifier: MIT

/// SAR_INDEPENDENT_ITERATIONS asserts that no iteration of the loop after it reads what another iteration
/// writes, so that the compiler vectorizes without checking the arrays for overlap. For implementation files.
#pragma once

#if defined(__clang__)
#define SAR_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define SAR_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
