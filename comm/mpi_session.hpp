// SPDX-License-Identifier: MIT

/// Programs that use sessions of MPI 4 and never call MPI_Init. They have neither MPI_COMM_WORLD nor
/// MPI_COMM_SELF, MPI_Initialized returns false, and no call tells when the last session ends.
#pragma once

#include <sar/config.hpp>

#include <mpi.h>

namespace sar { inline namespace SAR_PRECISION {

/// Returns whether `comm` comes from a session: MPI_Init was not called, and it is not MPI_COMM_WORLD,
/// MPI_COMM_SELF or MPI_COMM_NULL. Always false with an MPI that has no sessions. May be called before MPI is
/// initialized.
bool is_of_session(MPI_Comm comm);
/// The same for a communicator of Fortran.
bool is_of_session_f(MPI_Fint comm);

/// The number of this process, and how many there are: in MPI_COMM_WORLD, or in the process set mpi://WORLD
/// if MPI_Init was not called.
struct ProcessNumber {
  int process = 0, processes = 1;
};

/// Local. Throws CommunicationError for errors of MPI.
ProcessNumber process_number();

}}  // namespace sar
