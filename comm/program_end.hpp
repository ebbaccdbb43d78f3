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

}  // namespace sar
