// SPDX-License-Identifier: MIT

/// Includes Eigen's arrays and special functions so that a region of core/isa/isa_begin.hpp can use them:
/// compiled for the region's instruction set, in a namespace of its own. Include it before the region. For
/// implementation files.
#pragma once

// The standard headers that Eigen includes: they must be compiled for the baseline.
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <limits>
#include <new>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <sar/core/isa/isa_dispatch.hpp>

#ifdef SAR_ISA_TARGET
#undef Eigen
#define Eigen sar::eigen::SAR_ISA
#endif
// Eigen tests the compiler's macros, which do not follow the target pragmas of a region (GCC 12, clang).
#if defined(SAR_ISA_TARGET) && defined(__x86_64__) && !defined(__AVX__)
#define SAR_ISA_MACROS
#define __AVX__ 1
#define __AVX2__ 1
#define __FMA__ 1
#if SAR_VECTOR_BYTES == 64
#define __AVX512F__ 1
#define __AVX512DQ__ 1
#endif
#endif
SAR_ISA_PUSH

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

SAR_ISA_POP
#ifdef SAR_ISA_MACROS
#undef SAR_ISA_MACROS
#undef __AVX__
#undef __AVX2__
#undef __FMA__
#undef __AVX512F__
#undef __AVX512DQ__
#endif
