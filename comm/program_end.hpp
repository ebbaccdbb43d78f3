/// The end of the program is the last call of a rank: the others learn of it instead of waiting. For the sources
/// of comm/ only.
#pragma once

#include <sar/config.hpp>

#include <mpi.h>

namespace sar::inline SAR_PRECISION {

/// Takes `comm` over until MPI_Finalize, if it has all processes and is the first such, and returns whether it
/// does. MPI_Finalize then begins with a synchronization point, so that a rank which still makes a
/// collective call of that communicator throws there. `comm` is a duplicate of ours. All its ranks call it.
bool keep_until_finalize(MPI_Comm comm);

/// MPI_Finalize calls `action` when all ranks of the communicator above have come, or at once where there is
/// none. One action for the program.
void at_program_end(void (*action)() noexcept);

}  // namespace sar
