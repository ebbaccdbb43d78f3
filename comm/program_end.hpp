// SPDX-License-Identifier: MIT

/// Detects the exit of a rank, so that the other ranks throw instead of waiting for it forever. For the
/// sources of comm/ only.
#pragma once

#include <sar/config.hpp>

#include <mpi.h>

namespace sar { inline namespace SAR_PRECISION {

/// If `comm` (a duplicate made by the library) is the first communicator of all processes, takes it over
/// until MPI_Finalize and returns true. MPI_Finalize then begins with a synchronization point, at which a
/// rank that still makes a collective call of that communicator throws. All ranks of `comm` call it after a
/// synchronization point.
bool keep_until_finalize(MPI_Comm comm);

/// Registers `action` to be called in MPI_Finalize: after all ranks of the communicator above have reached
/// it, or at once if there is none. One action per program.
void at_program_end(void (*action)() noexcept);

}}  // namespace sar
