// SPDX-License-Identifier: MIT

/// OwnedComm: an MPI communicator that is freed at the end of a scope. For the sources of comm/ only.
#pragma once

#include <sar/comm/mpi_error.hpp>
#include <sar/config.hpp>

#include <mpi.h>

namespace sar { inline namespace SAR_PRECISION {

struct OwnedComm : NonCopyable {
  MPI_Comm comm = MPI_COMM_NULL;

  ~OwnedComm() {
    int finalized = 0;
    if (comm != MPI_COMM_NULL && !is_fork() && MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0)
      MPI_Comm_free(&comm);
  }
};

}}  // namespace sar
