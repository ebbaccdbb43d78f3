// SPDX-License-Identifier: MIT

/// Runs an example and turns an error into one message and an exit code.
#pragma once

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <mpi.h>

#include <exception>
#include <iostream>

namespace sar::examples {

/// Returns the exit code of `body`, or 1 if it throws on any rank; rank 0 prints the message. No rank waits
/// for a failed one. `body` gets the communicator of all ranks.
template <class Body>
int run(const char* program, const Body& body) {
  try {
    const Communicator comm =
        Communicator::world();  // also throws if the file of SAR_TRACE cannot be written
    return comm.agree([&]() -> int { return body(comm); });
  } catch (const std::exception& error) {  // the same exception on all ranks
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << program << ": " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace sar::examples
