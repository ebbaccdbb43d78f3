// SPDX-License-Identifier: MIT

/// Runs the test cases of a program on every rank. Ranks that do not report stay silent unless something
/// fails there; the exit code is that of the worst rank, on every rank. A rank also fails when no test case
/// is selected, or when test cases leave handles of MPI open, bytes in the account or blocks that nothing
/// refers to. A rank that crashes, or takes longer than SAR_TEST_SECONDS for a test case, names the test
/// case.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/leaks.hpp"
#include "support/mpi_handles.hpp"

#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <sstream>
#include <string_view>

namespace {

std::array<char, 1000> running{};  // the test case and its file, for the handler of signals
unsigned most_seconds = 0;         // of a test case; 0: any number

/// Says which test case runs, and ends the process as without this handler.
extern "C" void name_test_case(int number) {
  const auto say = [](const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); };
  say(number == SIGALRM ? "\ntakes too long: " : "\ncrashed: ");
  say(running.data());
  say("\n");
  std::signal(number, SIG_DFL);
  std::raise(number == SIGALRM ? SIGKILL : number);
}

/// Counts the test cases that a run selects, and notes the one that runs.
struct CountTestCases : doctest::IReporter {
  explicit CountTestCases(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    selected = stats.numTestCasesPassingFilters;
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData& test) override {
    std::snprintf(running.data(), running.size(), "test case '%s' of %s", test.m_name, test.m_file.c_str());
    ::alarm(most_seconds);
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized != 0) {  // a schedule of its own in tests/support/noise, the same if it runs alone
      const std::size_t number = std::hash<std::string_view>()(test.m_name);
      MPI_Pcontrol(static_cast<int>(number % (1U << 31)));
    }
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override { ::alarm(0); }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
  static inline unsigned selected = 0;
};
REGISTER_LISTENER("count", 0, CountTestCases);

}  // namespace

int main(int argc, char** argv) {
  sar::test::count_leaks(false);  // of MPI_Init
  const sar::Environment environment(argc, argv);
  sar::test::count_leaks(true);
  const sar::Communicator world = sar::Communicator::world();

  const char* threads = std::getenv("SAR_TEST_THREADS");
  const sar::ThreadLimit limit(threads != nullptr ? std::atoi(threads) : sar::num_threads());

  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM})
    std::signal(number, name_test_case);
  const char* seconds = std::getenv("SAR_TEST_SECONDS");
  if (seconds != nullptr) most_seconds = static_cast<unsigned>(std::atoi(seconds));
  std::ostringstream report;
  doctest::Context context(argc, argv);
  context.setOption("no-colors", true);
  context.setCout(&report);
  const sar::test::MpiHandles handles_of_main = sar::test::open_mpi_handles();
  bool failed = context.run() != 0;
  if (CountTestCases::selected == 0) {
    failed = true;
    report << "no test case is selected\n";
  }
  if (const sar::test::MpiHandles left = sar::test::open_mpi_handles(); left != handles_of_main) {
    failed = true;
    report << "left open: " << describe(left) << "; of main itself: " << describe(handles_of_main) << '\n';
  }
  if (sar::live_bytes() != 0) {
    failed = true;
    report << "left in the account: " << sar::live_bytes() << " bytes\n";
  }
  if (sar::test::has_leaks()) {
    failed = true;
    report << "blocks are lost: see stderr\n";
  }
  for (int rank = 0; rank < world.size(); ++rank) {
    world.barrier();
    if (rank == world.rank() && (rank == 0 || failed))
      std::cout << "rank " << rank << " of " << world.size() << '\n' << report.str() << std::flush;
  }
  return world.all_reduce(failed ? 1 : 0, sar::ReduceOp::max);
}
