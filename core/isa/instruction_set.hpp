// SPDX-License-Identifier: MIT

/// The instruction set that the kernels use, and what the processor supports.
///
/// For x86-64, a library built with SAR_NATIVE=OFF contains its kernels (the regions of
/// core/isa/isa_begin.hpp) once per instruction set. A process uses the best set that its processor and
/// operating system support. All other code is compiled for x86-64-v2; on a processor without it, the program
/// exits at its start with a message on stderr.
///
/// Different instruction sets give results that differ by rounding. With one set, results do not depend on
/// the number of threads. All ranks of a communicator use the lowest set that any of them supports, so
/// replicated computations, such as an optimizer's step, stay bitwise equal on all ranks. Exception: each
/// rank decides by itself whether bfloat16 products use AVX512-BF16 or single precision, so these may differ
/// by rounding between ranks on different processors.
///
/// Room core/isa: One source of a kernel, compiled for several instruction sets and chosen at run time.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// The instruction sets in increasing order, with their names in SAR_INSTRUCTION_SET and to_string().
enum class InstructionSet {
  generic,    ///< "generic": not x86-64; the compiler's default
  x86_64_v2,  ///< "x86-64-v2": SSE4.2
  x86_64_v3,  ///< "x86-64-v3": AVX2, FMA
  x86_64_v4,  ///< "x86-64-v4": AVX-512
  native,     ///< "native": built with SAR_NATIVE=ON for the processor of the build machine
  amx         ///< "amx": x86_64_v4 or native, plus products with AMX tiles of bfloat16
};

/// Local. Returns the instruction set of this process, chosen at the first call: the best one that the
/// processor supports, or the lower one named by the environment variable SAR_INSTRUCTION_SET. Throws
/// InputError if the variable has an unknown or unavailable value.
[[nodiscard]] InstructionSet instruction_set();

/// Local. Lowers instruction_set() to `set` if `set` is lower. Called by Communicator's constructor.
void lower_instruction_set(InstructionSet set);

/// Returns whether kernels may use AMX-BF16: instruction_set() is `amx`.
[[nodiscard]] bool has_amx_bf16();

/// Returns whether kernels may use AVX512-BF16: instruction_set() is at least `x86_64_v4`, and the processor
/// supports it.
[[nodiscard]] bool has_avx512_bf16();

/// Returns whether products with AVX512-BF16 are faster than those of single precision:
/// Processor::fast_avx512_bf16.
[[nodiscard]] bool has_fast_avx512_bf16();

/// Returns which variant of a kernel this process runs: the position of the best compiled set that is not
/// above instruction_set().
[[nodiscard]] int kernel_variant();

/// Returns the name of the set, for example "x86-64-v3".
[[nodiscard]] const char* to_string(InstructionSet set) noexcept;

/// x86-64 features, grouped by the levels of the ABI; all false on other architectures.
struct Processor {
  bool x86_64_v2 = false;
  bool x86_64_v3 = false;
  bool x86_64_v4 = false;
  bool avx512_bf16 = false;
  /// avx512_bf16, and VDPBF16PS does more multiplications in a second than fused multiply-adds of single
  /// precision. Of Intel's processors since Sapphire Rapids, which have AMX for this, it does half as many.
  bool fast_avx512_bf16 = false;
  bool amx_bf16 = false;  ///< AMX-TILE and AMX-BF16, plus AVX512-BF16 for conversions
};

/// Returns the features of this machine, read from CPUID and XCR0.
[[nodiscard]] Processor this_processor() noexcept;
}}  // namespace sar
