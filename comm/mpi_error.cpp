#include <sar/comm/mpi_error.hpp>
#include <sar/core/error.hpp>

#include <mpi.h>

#include <string>

namespace sar {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) [[likely]]
    return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  const std::string reason =
      length > 0 ? std::string(text, static_cast<std::size_t>(length)) : concat("error code ", code);
  throw CommunicationError(concat(call, " failed: ", reason));
}

}  // namespace sar
