// SPDX-License-Identifier: MIT

// Compiles the code up to core/isa/isa_pop.hpp for SAR_ISA_LEVEL. See core/isa/isa_begin.hpp.
#if SAR_ISA_LEVEL == 3
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v3"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#endif
#elif SAR_ISA_LEVEL == 4
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif
#endif
