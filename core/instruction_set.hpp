/// Which instructions of the processor the kernels use.
///
/// A library that is built with SAR_NATIVE=OFF for x86-64 has its kernels (sources with a region of
/// core/isa_begin.hpp) once for each instruction set of this list. A process uses the best that its processor
/// and its operating system have. All other code is compiled for x86-64-v2, and a program on a processor
/// without that ends at its start with a sentence on stderr.
///
/// Results of different instruction sets differ by rounding; with one, they do not depend on the number of
/// threads. The ranks of a communicator use the lowest set that one of them has, so that what all of them
/// compute, an optimizer's step say, stays the same on all. Whether products of bfloat16 numbers use
/// AVX512-BF16 is each rank's own: there, ranks on different processors may differ by rounding.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

/// Instruction sets, the lowest first, by the names that SAR_INSTRUCTION_SET and to_string() have.
enum class InstructionSet {
  generic,    ///< "generic": another architecture, and what its compiler takes by itself
  x86_64_v2,  ///< "x86-64-v2": SSE4.2
  x86_64_v3,  ///< "x86-64-v3": AVX2, FMA
  x86_64_v4,  ///< "x86-64-v4": AVX-512
  native,     ///< "native": the library was built with SAR_NATIVE=ON, for the processor of that machine
  amx         ///< "amx": as x86_64_v4 or native, and products in AMX tiles of bfloat16
};

/// What the kernels of this process use, chosen at the first call: the best of the processor, or the lower
/// one that the environment variable SAR_INSTRUCTION_SET names. Throws InputError when that is no name of
/// this list or not available. Local.
[[nodiscard]] InstructionSet instruction_set();

/// From now on, kernels use `set` where it is lower than instruction_set(). A Communicator does this when it
/// is made. Local.
void lower_instruction_set(InstructionSet set);

/// Whether kernels may use AMX-BF16: instruction_set() is `amx`.
[[nodiscard]] bool has_amx_bf16();

/// Whether kernels may use AVX512-BF16: instruction_set() is `x86_64_v4` or after it, and the processor has
/// it.
[[nodiscard]] bool has_avx512_bf16();

/// "x86-64-v3"
[[nodiscard]] const char* to_string(InstructionSet set) noexcept;

}  // namespace sar
