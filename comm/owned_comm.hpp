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
    if (comm != MPI_COMM_NULL && mpi_runs()) MPI_Comm_free(&comm);
  }
};

}}  // namespace sar
