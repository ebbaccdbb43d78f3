// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/isa/instruction_set.hpp>
#include <sar/core/isa/processor.hpp>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the sets that this library contains and this processor supports, in increasing order.
std::vector<InstructionSet> available_sets() {
  const Processor processor = this_processor();
  std::vector<InstructionSet> sets;
#if defined(SAR_ISA_VARIANTS)
  sets.push_back(InstructionSet::x86_64_v2);
  if (processor.x86_64_v3) sets.push_back(InstructionSet::x86_64_v3);
  if (processor.x86_64_v4) sets.push_back(InstructionSet::x86_64_v4);
#elif defined(SAR_ISA_NATIVE)
  sets.push_back(InstructionSet::native);
#else
  sets.push_back(InstructionSet::generic);
#endif
  if (processor.amx_bf16) sets.push_back(InstructionSet::amx);
  return sets;
}

/// Requests AMX tiles if needed. A library in double precision never uses them and does not request them.
bool can_use(InstructionSet set) {
  return set != InstructionSet::amx || sizeof(real) == sizeof(double) || ask_for_tiles();
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

InstructionSet instruction_set() {
  return chosen().load(std::memory_order_relaxed);
}

void lower_instruction_set(InstructionSet set) {
  InstructionSet now = instruction_set();
  while (set < now && !chosen().compare_exchange_weak(now, set, std::memory_order_relaxed)) {
  }
}

bool has_amx_bf16() {
  return instruction_set() == InstructionSet::amx;
}

bool has_avx512_bf16() {
  static const bool has = this_processor().avx512_bf16;
  return has && instruction_set() >= InstructionSet::x86_64_v4;
}

bool has_fast_avx512_bf16() {
  static const bool has = this_processor().fast_avx512_bf16;
  return has && has_avx512_bf16();
}

const char* to_string(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::generic:
      return "generic";
    case InstructionSet::x86_64_v2:
      return "x86-64-v2";
    case InstructionSet::x86_64_v3:
      return "x86-64-v3";
    case InstructionSet::x86_64_v4:
      return "x86-64-v4";
    case InstructionSet::native:
      return "native";
    case InstructionSet::amx:
      return "amx";
  }
  return "";
}

}}  // namespace sar
