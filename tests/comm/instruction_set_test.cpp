// SPDX-License-Identifier: MIT

// A program of its own, which makes no communicator before the test cases do.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/error.hpp>
#include <sar/core/isa/instruction_set.hpp>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <mpi.h>

namespace {

using namespace sar;

/// The words of the error for `wanted` on the last rank, after its last colon.
template <class Choose>
std::vector<std::string> words_for(const char* wanted, const Choose& choose) {
  setenv("SAR_INSTRUCTION_SET", wanted, 1);
  std::string message;
  try {
    choose();
  } catch (const InputError& error) {
    message = error.what();
  }
  const std::string expected = "SAR_INSTRUCTION_SET is '" + std::string(wanted) + "'";
  REQUIRE(message.find(expected) != std::string::npos);
  std::vector<std::string> words;
  std::istringstream text(message.substr(message.rfind(": ") + 2));
  for (std::string word; std::getline(text >> std::ws, word, ',');) words.push_back(word);
  return words;
}

bool is_last_rank() {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return rank == size - 1;
}

// One case: a process chooses once, and refuses before it has chosen.
TEST_CASE("SAR_INSTRUCTION_SET names one of the sets of this processor, and the ranks use the lowest") {
  const auto ask = [] { (void)instruction_set(); };
  const std::vector<std::string> words = words_for("sse9", ask);
  REQUIRE(!words.empty());
  CHECK(words_for("AMX", ask) == words);
  CHECK((words.back() == "amx") == this_processor().amx_bf16);

  // one rank is refused, and the error is on all
  setenv("SAR_INSTRUCTION_SET", is_last_rank() ? "sse9" : words.back().c_str(), 1);
  CHECK_THROWS_WITH_AS(Communicator::world(), doctest::Contains("SAR_INSTRUCTION_SET is 'sse9'"), InputError);

  setenv("SAR_INSTRUCTION_SET", (is_last_rank() ? words.front() : words.back()).c_str(), 1);
  const Communicator comm = Communicator::world();
  const InstructionSet chosen = instruction_set();
  CHECK(to_string(chosen) == words.front());
  CHECK(kernel_variant() == 0);
  CHECK(!has_amx_bf16());
  if (chosen < InstructionSet::x86_64_v4) CHECK(!has_avx512_bf16());
  lower_instruction_set(InstructionSet::amx);
  CHECK(instruction_set() == chosen);
}

TEST_CASE("levels of x86-64 contain those below") {
  const Processor p = this_processor();
  CHECK((p.x86_64_v3 || !p.x86_64_v4));
  CHECK((p.x86_64_v2 || !p.x86_64_v3));
  CHECK((p.avx512_bf16 || !p.amx_bf16));
  CHECK((p.avx512_bf16 || !p.fast_avx512_bf16));
#ifdef __x86_64__
  CHECK(p.x86_64_v3 == (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0));
  CHECK(p.x86_64_v4 == (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
                        __builtin_cpu_supports("avx512dq") != 0));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return doctest::Context(argc, argv).run();
}
