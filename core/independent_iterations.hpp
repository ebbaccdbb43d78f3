/// SAR_INDEPENDENT_ITERATIONS stands before a loop whose iterations do not read what others of them write, so
/// that the compiler need not compare the arrays' addresses. For implementation files.
#pragma once

#if defined(__clang__)
#define SAR_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define SAR_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
