/// Runs the test cases of a program on every rank. Ranks that do not report stay silent unless something
/// fails there; the exit code is that of the worst rank, on every rank.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>

#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  const sar::Environment environment(argc, argv);
  const sar::Communicator world = sar::Communicator::world();

  std::ostringstream report;
  doctest::Context context(argc, argv);
  context.setOption("no-colors", true);
  context.setCout(&report);
  const int failed = context.run();
  for (int rank = 0; rank < world.size(); ++rank) {
    world.barrier();
    if (rank == world.rank() && (rank == 0 || failed != 0))
      std::cout << "rank " << rank << " of " << world.size() << '\n' << report.str() << std::flush;
  }
  return world.all_reduce(failed != 0 ? 1 : 0, sar::ReduceOp::max);
}
