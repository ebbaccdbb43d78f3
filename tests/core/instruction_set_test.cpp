#include <sar/core/error.hpp>
#include <sar/core/instruction_set.hpp>
#include <sar/core/processor.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace sar;

/// The words of the message for `wanted`, after its last colon.
std::vector<std::string> words_for(const char* wanted) {
  setenv("SAR_INSTRUCTION_SET", wanted, 1);
  std::string message;
  try {
    (void)instruction_set();
  } catch (const InputError& error) {
    message = error.what();
  }
  REQUIRE(message.find("SAR_INSTRUCTION_SET is '" + std::string(wanted) + "'") == 0);
  std::vector<std::string> words;
  std::istringstream text(message.substr(message.rfind(": ") + 2));
  for (std::string word; std::getline(text >> std::ws, word, ',');) words.push_back(word);
  return words;
}

// One case: a process chooses once, and refuses before it has chosen.
TEST_CASE("SAR_INSTRUCTION_SET names one of the sets of this processor") {
  const std::vector<std::string> words = words_for("sse9");
  REQUIRE(!words.empty());
  CHECK(words_for("AMX") == words);
  CHECK((words.back() == "amx") == this_processor().amx_bf16);

  setenv("SAR_INSTRUCTION_SET", words.front().c_str(), 1);
  const InstructionSet chosen = instruction_set();
  CHECK(to_string(chosen) == words.front());
  CHECK(!has_amx_bf16());
  if (chosen < InstructionSet::x86_64_v4) CHECK(!has_avx512_bf16());
  setenv("SAR_INSTRUCTION_SET", "sse9", 1);
  CHECK(instruction_set() == chosen);
}

TEST_CASE("levels of x86-64 contain those below") {
  const Processor p = this_processor();
  CHECK((p.x86_64_v3 || !p.x86_64_v4));
  CHECK((p.x86_64_v2 || !p.x86_64_v3));
  CHECK((p.x86_64_v4 || !p.amx_bf16));
#if defined(__GNUC__) && defined(__x86_64__)
  CHECK(p.x86_64_v2 >= (__builtin_cpu_supports("avx2") != 0));
  CHECK(p.x86_64_v3 <= (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0));
  CHECK(p.x86_64_v4 == (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
                        __builtin_cpu_supports("avx512dq") != 0));
#endif
}

}  // namespace
