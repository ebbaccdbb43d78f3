// SPDX-License-Identifier: MIT

/// SAR_UNROLL unrolls the loop after it, whose number of iterations is a constant, so that the elements of
/// arrays in it are registers. For implementation files.
#pragma once

#if defined(__clang__)
#define SAR_UNROLL _Pragma("unroll")
#else
#define SAR_UNROLL _Pragma("GCC unroll 16")
#endif
