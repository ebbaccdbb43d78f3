// Ends what core/isa_push.hpp begins.
#if SAR_ISA_LEVEL >= 3
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
