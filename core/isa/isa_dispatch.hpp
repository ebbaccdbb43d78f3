// SPDX-License-Identifier: MIT

/// Macros for the regions of core/isa/isa_begin.hpp.
///
///     SAR_ISA            namespace of the kernels in this compilation
///     SAR_ISA_LEVEL      2, 3, 4: x86-64-v2, v3, v4; 0: compiled once
///     SAR_VECTOR_BYTES   16, 32, 64: size of the vector registers
///     SAR_COMPILED_ONCE  1 in exactly one of the compilations of a source: for its code outside of regions
///     SAR_DISPATCH(result, name, parameters, arguments)
///                        defines the function `name`, which calls the variant of instruction_set()
///     SAR_DISPATCH_IN(scope, result, name, parameters, arguments)
///                        the same for a function in namespace `scope`, both here and in the region
#pragma once

#include <sar/config.hpp>
#include <sar/core/isa/instruction_set.hpp>

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
#define SAR_DISPATCH_BODY(name, arguments) return SAR_ISA::name arguments;
#elif SAR_ISA_LEVEL == 2
#define SAR_DISPATCH_BODY(name, arguments) \
  switch (instruction_set()) {             \
    case InstructionSet::x86_64_v2:        \
      return x86_64_v2::name arguments;    \
    case InstructionSet::x86_64_v3:        \
      return x86_64_v3::name arguments;    \
    default:                               \
      return x86_64_v4::name arguments;    \
  }
#endif

#if SAR_ISA_LEVEL == 0
#define SAR_DECLARE_ISAS(...)
#elif SAR_ISA_LEVEL == 2
#define SAR_DECLARE_ISAS(...) \
  namespace x86_64_v3 {       \
  __VA_ARGS__;                \
  }                           \
  namespace x86_64_v4 {       \
  __VA_ARGS__;                \
  }
#endif

#if SAR_COMPILED_ONCE
#define SAR_DISPATCH(result, name, parameters, arguments) \
  namespace sar { inline namespace SAR_PRECISION {        \
  SAR_DECLARE_ISAS(result name parameters)                \
  result name parameters {                                \
    SAR_DISPATCH_BODY(name, arguments)                    \
  }                                                       \
  }}                                                      \
  static_assert(true)
#define SAR_DISPATCH_IN(scope, result, name, parameters, arguments) \
  namespace sar { inline namespace SAR_PRECISION {                  \
  SAR_DECLARE_ISAS(namespace scope { result name parameters; })     \
  namespace scope {                                                 \
  result name parameters {                                          \
    SAR_DISPATCH_BODY(scope::name, arguments)                       \
  }                                                                 \
  }                                                                 \
  }}                                                                \
  static_assert(true)
#else
#define SAR_DISPATCH(result, name, parameters, arguments) static_assert(true)
#define SAR_DISPATCH_IN(scope, result, name, parameters, arguments) static_assert(true)
#endif
