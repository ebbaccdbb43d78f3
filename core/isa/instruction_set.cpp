// SPDX-License-Identifier: MIT

// The levels x86-64-v2, v3 and v4 are those of the ABI for x86-64. A feature needs the bits of its
// instructions in CPUID (leaves 1, 7 and 0x80000001) and, from AVX on, those of its registers in XCR0: the
// operating system must save them.
#include <sar/core/error.hpp>
#include <sar/core/isa/instruction_set.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

using enum InstructionSet;

struct Row {
  InstructionSet set;
  const char* name;
  bool Processor::*feature = nullptr;  // that the set needs; null: none
  const char* instructions = "";       // the main ones of the feature
};
constexpr Row table[] = {{generic, "generic"},
                         {x86_64_v2, "x86-64-v2", &Processor::x86_64_v2, "SSE4.2, POPCNT, CMPXCHG16B"},
                         {x86_64_v3, "x86-64-v3", &Processor::x86_64_v3, "AVX2, FMA"},
                         {x86_64_v4, "x86-64-v4", &Processor::x86_64_v4, "AVX-512"},
                         {native, "native"},
                         {amx, "amx", &Processor::amx_bf16, "AMX-BF16, AVX512-BF16"}};

constexpr const Row& row_of(InstructionSet set) {
  return table[static_cast<int>(set)];
}
static_assert(std::size(table) == static_cast<std::size_t>(amx) + 1);
static_assert([] {
  for (const Row& row : table)
    if (&row_of(row.set) != &row) return false;
  return true;
}());

// The sets that this library has kernels for, in increasing order.
constexpr InstructionSet compiled[] = {SAR_COMPILED_SETS};
static_assert(std::is_sorted(std::begin(compiled), std::end(compiled)));

#ifdef __x86_64__
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
#endif

/// Requests permission to use AMX tiles. Linux grants it only on request, because signal frames become
/// larger. Returns whether it was granted.
bool ask_for_tiles() noexcept {
#if defined(__x86_64__) && defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

bool supports(const Processor& processor, InstructionSet set) {
  bool Processor::*const feature = row_of(set).feature;
  return feature == nullptr || processor.*feature;
}

#ifdef __x86_64__
/// Runs before main(), and before code that is compiled for more than the first x86-64 processors.
__attribute__((constructor(101))) void require_baseline() {
  if (supports(this_processor(), compiled[0])) return;
  std::fprintf(stderr, "sar: this processor lacks %s (%s), which the library needs\n",
               row_of(compiled[0]).name, row_of(compiled[0]).instructions);
  std::_Exit(EXIT_FAILURE);
}
#endif

/// Returns the sets that this library contains and this processor supports, in increasing order.
std::vector<InstructionSet> available_sets() {
  const Processor processor = this_processor();
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : compiled)
    if (supports(processor, set)) sets.push_back(set);
  if (processor.amx_bf16) sets.push_back(amx);
  return sets;
}

/// Requests AMX tiles if needed. A library in double precision never uses them and does not request them.
bool can_use(InstructionSet set) {
  return set != amx || sizeof(real) == sizeof(double) || ask_for_tiles();
}

// Returns the best set, or the one named by SAR_INSTRUCTION_SET.
InstructionSet choose() {
  std::vector<InstructionSet> sets = available_sets();
  const char* wanted = std::getenv("SAR_INSTRUCTION_SET");
  if (wanted == nullptr || *wanted == '\0') {
    if (!can_use(sets.back())) sets.pop_back();
    return sets.back();
  }
  for (const InstructionSet set : sets)
    if (to_string(set) == std::string_view(wanted) && can_use(set)) return set;
  throw InputError(concat("SAR_INSTRUCTION_SET is '", wanted,
                          "'; with this library and on this processor it can be: ",
                          joined(sets, [](InstructionSet set) { return to_string(set); })));
}

std::atomic<InstructionSet>& chosen() {
  static std::atomic<InstructionSet> set(choose());
  return set;
}

}  // namespace

Processor this_processor() noexcept {
  Processor p;
#ifdef __x86_64__
  const Registers one = cpuid(1), seven = cpuid(7), seven_more = cpuid(7, 1), extended = cpuid(0x80000001);
  // LAHF | SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
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
#endif
  return p;
}

InstructionSet instruction_set() {
  return chosen().load(std::memory_order_relaxed);
}

void lower_instruction_set(InstructionSet set) {
  InstructionSet now = instruction_set();
  while (set < now && !chosen().compare_exchange_weak(now, set, std::memory_order_relaxed)) {
  }
}

bool has_amx_bf16() {
  return instruction_set() == amx;
}

bool has_avx512_bf16() {
  static const bool has = this_processor().avx512_bf16;
  return has && instruction_set() >= x86_64_v4;
}

bool has_fast_avx512_bf16() {
  static const bool has = this_processor().fast_avx512_bf16;
  return has && has_avx512_bf16();
}

int kernel_variant() {
  const InstructionSet set = instruction_set();
  int variant = static_cast<int>(std::size(compiled)) - 1;
  while (variant > 0 && compiled[variant] > set) --variant;
  return variant;
}

const char* to_string(InstructionSet set) noexcept {
  return row_of(set).name;
}

}}  // namespace sar
