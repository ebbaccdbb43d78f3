// SPDX-License-Identifier: MIT

/// A program whose rank 1 fails outside of any collective call, while rank 0 waits for it in one: the program
/// ends.
#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/error.hpp>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  try {
    const sar::Environment environment(argc, argv);
    const sar::Communicator comm = sar::Communicator::world();
    sar::require(comm.rank() != 1, "rank 1 has failed alone");
    comm.barrier();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
