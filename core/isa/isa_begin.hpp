// SPDX-License-Identifier: MIT

// Opens a region of kernel code. The code up to core/isa/isa_end.hpp is compiled once per instruction set,
// each time in its own namespace:
//
//     #include <...>                          // all includes come before the region
//     #include <sar/core/isa/isa_begin.hpp>   // opens namespace sar::SAR_PRECISION::SAR_ISA
//     void scale(Index n, real* x) { ... }
//     #include <sar/core/isa/isa_end.hpp>
//     SAR_DISPATCH(void, scale, (Index n, real* x), (n, x));   // defines sar::scale, which calls the kernel
//
// CMake compiles the sources listed by sar_kernels() once per set of the table in cmake/SarTargets.cmake.
// Other sources, and all sources with SAR_NATIVE=ON, are compiled once, with one namespace and the compiler's
// own target. Headers with kernel code open a region, too. Within a region, SAR_VECTOR_BYTES is the size of
// the vector registers.
//
// Why regions: the linker keeps one copy of each inline function and template instantiation. A function
// outside of a region must therefore be compiled for the baseline only; otherwise its copy for a newer
// processor could be called on an older one. For the same reason no such function takes or returns a vector
// by value: the calling convention depends on the size of the registers.
#ifdef SAR_ISA_IS_OPEN
#error "a region of kernel code within another: include headers before isa_begin.hpp"
#endif
#define SAR_ISA_IS_OPEN

#include <sar/core/isa/isa_dispatch.hpp>

SAR_ISA_PUSH

namespace sar { inline namespace SAR_PRECISION { namespace SAR_ISA {
