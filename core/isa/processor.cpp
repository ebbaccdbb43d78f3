// SPDX-License-Identifier: MIT

// The levels x86-64-v2, v3 and v4 are those of the ABI for x86-64. A feature needs the bits of its
// instructions in CPUID (leaves 1, 7 and 0x80000001) and, from AVX on, those of its registers in XCR0: the
// operating system must save them.
#include <sar/core/isa/processor.hpp>

#ifdef __x86_64__
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <cstdio>
#include <cstdlib>
#endif

namespace sar { inline namespace SAR_PRECISION {
#ifdef __x86_64__
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned part = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, part, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

/// Returns XCR0: bits for the register sets that the operating system saves on a context switch.
unsigned saved_registers() {
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr unsigned bits(auto... numbers) {
  return ((1U << numbers) | ...);
}
bool has(unsigned word, unsigned wanted) {
  return (word & wanted) == wanted;
}

}  // namespace

bool ask_for_tiles() noexcept {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

Processor this_processor() noexcept {
  const Registers one = cpuid(1), seven = cpuid(7), seven_more = cpuid(7, 1), extended = cpuid(0x80000001);
  // LAHF | SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
  Processor p;
  p.x86_64_v2 = has(extended.c, bits(0)) && has(one.c, bits(0, 9, 13, 19, 20, 23));
  const unsigned saved = has(one.c, bits(27)) ? saved_registers() : 0;  // OSXSAVE
  // FMA, MOVBE, AVX, F16C | LZCNT | BMI1, AVX2, BMI2 | XMM and YMM registers
  p.x86_64_v3 = p.x86_64_v2 && has(one.c, bits(12, 22, 28, 29)) && has(extended.c, bits(5)) &&
                has(seven.b, bits(3, 5, 8)) && has(saved, bits(1, 2));
  // AVX512F, DQ, CD, BW, VL | mask and ZMM registers
  p.x86_64_v4 = p.x86_64_v3 && has(seven.b, bits(16, 17, 28, 30, 31)) && has(saved, bits(5, 6, 7));
  p.avx512_bf16 = p.x86_64_v4 && has(seven_more.a, bits(5));
  const Registers vendor = cpuid(0);
  const bool is_intel = vendor.b == 0x756e6547 && vendor.d == 0x49656e69 && vendor.c == 0x6c65746e;
  const unsigned family = one.a >> 8 & 15, model = (one.a >> 4 & 15) | (one.a >> 12 & 0xf0);
  const bool is_cooper_lake = family == 6 && model == 0x55;
  p.fast_avx512_bf16 = p.avx512_bf16 && (!is_intel || is_cooper_lake);
  // AMX-BF16, AMX-TILE | tiles and their configuration
  p.amx_bf16 = p.avx512_bf16 && has(seven.d, bits(22, 24)) && has(saved, bits(17, 18));
  return p;
}

namespace {

#ifdef SAR_ISA_VARIANTS
/// Runs before main(), and before any code that needs x86-64-v2.
__attribute__((constructor(101))) void require_x86_64_v2() {
  if (this_processor().x86_64_v2) return;
  std::fputs("sar: this processor lacks x86-64-v2 (SSE4.2, POPCNT, CMPXCHG16B), which the library needs\n",
             stderr);
  std::_Exit(EXIT_FAILURE);
}
#endif

}  // namespace
#else

Processor this_processor() noexcept {
  return {};
}
bool ask_for_tiles() noexcept {
  return false;
}

#endif

}}  // namespace sar
