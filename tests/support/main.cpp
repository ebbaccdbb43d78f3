/// Runs the test cases of a program on every rank. Ranks that do not report stay silent unless something
/// fails there; the exit code is that of the worst rank, on every rank. A rank also fails when the test cases
/// leave handles of MPI open, bytes in the account or blocks that nothing refers to.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/leaks.hpp"
#include "support/mpi_handles.hpp"

#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstdlib>
#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  sar::test::count_leaks(false);  // of MPI_Init
  const sar::Environment environment(argc, argv);
  sar::test::count_leaks(true);
  const sar::Communicator world = sar::Communicator::world();

  const char* threads = std::getenv("SAR_TEST_THREADS");
  const sar::ThreadLimit limit(threads != nullptr ? std::atoi(threads) : sar::num_threads());

  std::ostringstream report;
  doctest::Context context(argc, argv);
  context.setOption("no-colors", true);
  context.setCout(&report);
  const sar::test::MpiHandles handles_of_main = sar::test::open_mpi_handles();
  bool failed = context.run() != 0;
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
