/// The macros of core/isa_begin.hpp.
///
/// SAR_ISA           the namespace of this compilation's kernels
/// SAR_ISA_LEVEL     2, 3, 4: x86-64-v2, v3, v4; 0: the only one
/// SAR_VECTOR_BYTES  16, 32, 64: the size of the vector registers
/// SAR_COMPILED_ONCE  1 in one of the compilations of a source: for its code outside of regions
/// SAR_DISPATCH(result, name, parameters, arguments)  defines the function of all instruction sets
#pragma once

#include <sar/config.hpp>
#include <sar/core/instruction_set.hpp>

#ifndef SAR_ISA
#define SAR_ISA one_isa
#define SAR_ISA_LEVEL 0
#endif

#if SAR_ISA_LEVEL == 4 || (SAR_ISA_LEVEL == 0 && defined(__AVX512F__))
#define SAR_VECTOR_BYTES 64
#elif SAR_ISA_LEVEL == 3 || (SAR_ISA_LEVEL == 0 && defined(__AVX2__))
#define SAR_VECTOR_BYTES 32
#else
#define SAR_VECTOR_BYTES 16
#endif

#define SAR_COMPILED_ONCE (SAR_ISA_LEVEL <= 2)

#if SAR_ISA_LEVEL == 0
#define SAR_DISPATCH(result, name, parameters, arguments) \
  namespace sar::inline SAR_PRECISION {                   \
  result name parameters {                                \
    return SAR_ISA::name arguments;                       \
  }                                                       \
  }                                                       \
  static_assert(true)
#elif SAR_ISA_LEVEL == 2
#define SAR_DISPATCH(result, name, parameters, arguments) \
  namespace sar::inline SAR_PRECISION {                   \
  namespace x86_64_v3 {                                   \
  result name parameters;                                 \
  }                                                       \
  namespace x86_64_v4 {                                   \
  result name parameters;                                 \
  }                                                       \
  result name parameters {                                \
    switch (instruction_set()) {                          \
      case InstructionSet::x86_64_v2:                     \
        return x86_64_v2::name arguments;                 \
      case InstructionSet::x86_64_v3:                     \
        return x86_64_v3::name arguments;                 \
      default:                                            \
        return x86_64_v4::name arguments;                 \
    }                                                     \
  }                                                       \
  }                                                       \
  static_assert(true)
#else
#define SAR_DISPATCH(result, name, parameters, arguments) static_assert(true)
#endif
