// SPDX-License-Identifier: MIT

// Ends the section that core/isa/isa_push.hpp began.
#if SAR_ISA_LEVEL >= 3
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
