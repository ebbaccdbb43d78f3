/// Runs the test cases of a program on every rank. Ranks that do not report stay silent unless something
/// fails there; the exit code is that of the worst rank, on every rank. A rank also fails when the test cases
/// leave handles of MPI open or bytes in the account.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/memory.hpp>

#include "support/mpi_handles.hpp"

#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  const sar::Environment environment(argc, argv);
  const sar::Communicator world = sar::Communicator::world();

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
  for (int rank = 0; rank < world.size(); ++rank) {
    world.barrier();
    if (rank == world.rank() && (rank == 0 || failed))
      std::cout << "rank " << rank << " of " << world.size() << '\n' << report.str() << std::flush;
  }
  return world.all_reduce(failed ? 1 : 0, sar::ReduceOp::max);
}
