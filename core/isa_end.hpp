// Closes a region of core/isa_begin.hpp.
}  // namespace sar

#if SAR_ISA_LEVEL >= 3
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#undef SAR_ISA_IS_OPEN
