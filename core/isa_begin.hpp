// Opens a region of kernel code: what follows until core/isa_end.hpp is compiled once for each instruction set,
// in a namespace of its own:
//
//     #include <...>                      // all of them before the region: their functions stay for any processor
//     #include <sar/core/isa_begin.hpp>   // opens namespace sar::inline SAR_PRECISION::SAR_ISA
//     void scale(Index n, real* x) { ... }
//     #include <sar/core/isa_end.hpp>
//     SAR_DISPATCH(void, scale, (Index n, real* x), (n, x));   // sar::scale calls that of instruction_set()
//
// CMake compiles sources that sar_kernels() lists once for each set, with SAR_ISA and SAR_ISA_LEVEL defined. Elsewhere, and
// with SAR_NATIVE=ON, there is one namespace, for the instructions that the compiler is told. Headers with code
// of kernels have a region, too. In a region, SAR_VECTOR_BYTES is the size of the vector registers.
//
// The linker keeps one of all functions of a name that are inline or made from a template. One that is not in
// a region is therefore never compiled for more than all processors have, or it could become the one that a
// lesser processor calls. Nor does such a function take or return a vector by value: that changes with the size of the registers.
#ifdef SAR_ISA_IS_OPEN
#error "a region of kernel code within another: include headers before isa_begin.hpp"
#endif
#define SAR_ISA_IS_OPEN

#include <sar/core/isa_dispatch.hpp>

#include <sar/core/isa_push.hpp>

namespace sar::inline SAR_PRECISION::SAR_ISA {
