/// Return codes of MPI become exceptions. For the sources of comm/ only.
#pragma once

namespace sar {

/// Throws CommunicationError with MPI's own text, preceded by the name of the call, unless `code` is
/// MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace sar
