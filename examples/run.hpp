/// How the programs end: when something goes wrong, with one sentence and the right exit code.
#pragma once

#include <sar/sar.hpp>

#include <mpi.h>

#include <exception>
#include <iostream>

namespace sar::examples {

/// The exit code that `body` returns, or 1 when it throws on any rank, which rank 0 tells: no rank waits for
/// one that has failed. `body` gets the communicator of all ranks.
template <class Body>
int run(const char* program, const Body& body) {
  try {
    const Communicator comm =
        Communicator::world();  // throws, too, if the file of SAR_TRACE cannot be written
    return comm.agree([&]() -> int { return body(comm); });
  } catch (const std::exception& error) {  // the same on all ranks
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << program << ": " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace sar::examples
