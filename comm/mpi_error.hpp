/// Converts MPI errors to exceptions. For the sources of comm/ only.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Throws CommunicationError with the name of the call and MPI's message unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Throws CommunicationError if MPI was initialized with a `level` that does not allow calls from several
/// threads.
void check_thread_level(int level);

}}  // namespace sar
