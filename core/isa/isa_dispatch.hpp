// SPDX-License-Identifier: MIT

/// Macros for the regions of core/isa/isa_begin.hpp.
///
///     SAR_ISA            namespace of the kernels in this compilation
///     SAR_ISA_NUMBER     its position in the table of cmake/SarTargets.cmake; 0: the baseline, or compiled once
///     SAR_ISA_TARGET     the compiler's target, a string; not defined where it is that of the whole source
///     SAR_ISAS(M, ...)   M(namespace, ...) for each namespace of kernels, in increasing order
///     SAR_VECTOR_BYTES   16, 32, 64: size of the vector registers
///     SAR_COMPILED_ONCE  1 in exactly one of the compilations of a source: for its code outside of regions
///     SAR_DISPATCH(result, name, parameters, arguments)
///                        defines the function `name`, which calls the variant of instruction_set()
///     SAR_DISPATCH_IN(scope, result, name, parameters, arguments)
///                        the same for a function in namespace `scope`, both here and in the region
///     SAR_ISA_PUSH, SAR_ISA_POP
///                        begin and end code that is compiled for SAR_ISA_TARGET
#pragma once

#include <sar/config.hpp>
#include <sar/core/isa/instruction_set.hpp>

#include <iterator>

#ifndef SAR_ISA
#define SAR_ISA one_isa
#define SAR_ISA_NUMBER 0
#define SAR_ISAS(M, ...) M(one_isa, __VA_ARGS__)
#if defined(__AVX512F__)
#define SAR_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SAR_VECTOR_BYTES 32
#else
#define SAR_VECTOR_BYTES 16
#endif
#endif

#define SAR_PRAGMA_TEXT(...) _Pragma(#__VA_ARGS__)
#define SAR_PRAGMA(...) SAR_PRAGMA_TEXT(__VA_ARGS__)
#if !defined(SAR_ISA_TARGET)
#define SAR_ISA_PUSH
#define SAR_ISA_POP
#elif defined(__clang__)
#define SAR_ISA_PUSH \
  SAR_PRAGMA(clang attribute push(__attribute__((target(SAR_ISA_TARGET))), apply_to = function))
#define SAR_ISA_POP SAR_PRAGMA(clang attribute pop)
#elif SAR_VECTOR_BYTES == 64 && defined(__x86_64__)
#define SAR_ISA_PUSH \
  SAR_PRAGMA(GCC push_options) SAR_PRAGMA(GCC target(SAR_ISA_TARGET, "prefer-vector-width=512"))
#define SAR_ISA_POP SAR_PRAGMA(GCC pop_options)
#else
#define SAR_ISA_PUSH SAR_PRAGMA(GCC push_options) SAR_PRAGMA(GCC target(SAR_ISA_TARGET))
#define SAR_ISA_POP SAR_PRAGMA(GCC pop_options)
#endif

#define SAR_COMPILED_ONCE (SAR_ISA_NUMBER == 0)

#define SAR_DECLARE_VARIANT(isa, ...) \
  namespace isa {                     \
  __VA_ARGS__;                        \
  }
#define SAR_VARIANT(isa, name) isa::name,
#define SAR_DISPATCH_BODY(result, name, parameters, arguments)                  \
  {                                                                             \
    using Variant = result(*) parameters;                                       \
    constexpr Variant variants[] = {SAR_ISAS(SAR_VARIANT, name)};               \
    return variants[std::size(variants) == 1 ? 0 : kernel_variant()] arguments; \
  }

#if SAR_COMPILED_ONCE
#define SAR_DISPATCH(result, name, parameters, arguments)                       \
  namespace sar { inline namespace SAR_PRECISION {                              \
  SAR_ISAS(SAR_DECLARE_VARIANT, result name parameters)                         \
  result name parameters SAR_DISPATCH_BODY(result, name, parameters, arguments) \
  }}                                                                            \
  static_assert(true)
#define SAR_DISPATCH_IN(scope, result, name, parameters, arguments)                    \
  namespace sar { inline namespace SAR_PRECISION {                                     \
  SAR_ISAS(SAR_DECLARE_VARIANT, namespace scope { result name parameters; })           \
  namespace scope {                                                                    \
  result name parameters SAR_DISPATCH_BODY(result, scope::name, parameters, arguments) \
  }                                                                                    \
  }}                                                                                   \
  static_assert(true)
#else
#define SAR_DISPATCH(result, name, parameters, arguments) static_assert(true)
#define SAR_DISPATCH_IN(scope, result, name, parameters, arguments) static_assert(true)
#endif
