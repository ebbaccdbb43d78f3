/// Errors of MPI become exceptions. For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>

namespace sar::inline SAR_PRECISION {

/// Throws CommunicationError with MPI's own text, preceded by the name of the call, unless `code` is
/// MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Throws CommunicationError when MPI is initialized at a `level` that allows no other threads than its own.
void check_thread_level(int level);

}  // namespace sar
