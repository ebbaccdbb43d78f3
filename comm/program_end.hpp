// SPDX-License-Identifier: MIT

/// Detects the exit of a rank, so that the other ranks throw instead of waiting for it forever. For the
/// sources of comm/ only.
#pragma once

#include <sar/config.hpp>

#include <mpi.h>

namespace sar { inline namespace SAR_PRECISION {

/// If `comm` (a duplicate made by the library) is the first communicator of all processes, takes it over
/// until MPI_Finalize and returns true. MPI_Finalize then begins with a synchronization point, at which a
/// rank that still makes a collective call of that communicator throws. For a communicator of a session,
/// which must be freed before the session ends, returns false: end_of_session() has that synchronization
/// point. All ranks of `comm` call it after a synchronization point.
bool keep_until_finalize(MPI_Comm comm);

/// Registers `action` to be called in MPI_Finalize with MPI_COMM_NULL: after all ranks of the communicator
/// above have reached it, or at once if there is none. end_of_session() calls it for each communicator of a
/// session. One action per program, registered with the communicator `comm`.
void at_program_end(MPI_Comm comm, void (*action)(MPI_Comm) noexcept);

/// To be called with a communicator of a session when its last handle is destroyed. If the ranks come here
/// together, synchronizes them where MPI_Finalize would, calls the action, and returns true. Otherwise it
/// returns false and the communicator must not be freed.
bool end_of_session(MPI_Comm comm, bool together) noexcept;

/// Waits until all ranks arrive here with `comm`: those that still make collective calls of it throw.
void wait_for_end(MPI_Comm comm);
}}  // namespace sar
