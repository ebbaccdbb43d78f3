#include <sar/comm/mpi_error.hpp>
#include <sar/core/error.hpp>

#include <mpi.h>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  const std::string reason = length > 0 ? std::string(text, length) : concat("error code ", code);
  throw CommunicationError(concat(call, " failed: ", reason));
}

void check_thread_level(int level) {
  require<CommunicationError>(
      level >= MPI_THREAD_FUNNELED,
      "MPI is initialized at MPI_THREAD_SINGLE, expected MPI_THREAD_FUNNELED at least, "
      "because loops run on several threads: use MPI_Init_thread");
}

}}  // namespace sar
