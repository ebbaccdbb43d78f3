// SPDX-License-Identifier: MIT
#include <sar/comm/mpi_error.hpp>
#include <sar/comm/mpi_session.hpp>

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define SAR_MPI_SESSIONS 1
#endif

namespace sar { inline namespace SAR_PRECISION {
namespace {

[[maybe_unused]] bool is_initialized() {
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  return initialized != 0;
}

#ifdef SAR_MPI_SESSIONS
/// Opens a session of its own, because a communicator does not tell which session it comes from.
ProcessNumber number_in_process_set() {
  ProcessNumber number;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  check_mpi(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), "MPI_Session_init");
  int code = MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  if (code == MPI_SUCCESS) {
    MPI_Group_rank(all, &number.process);
    MPI_Group_size(all, &number.processes);
    MPI_Group_free(&all);
  }
  MPI_Session_finalize(&session);
  check_mpi(code, "MPI_Group_from_session_pset");
  return number;
}
#endif

}  // namespace

#ifdef SAR_MPI_SESSIONS
bool is_of_session(MPI_Comm comm) {
  const bool is_other =
      comm != MPI_Comm{} && comm != MPI_COMM_NULL && comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF;
  return is_other && !is_initialized();
}

bool is_of_session_f(MPI_Fint comm) {
#ifdef OPEN_MPI                          // whose MPI_Comm_f2c ends a program that has not initialized MPI
  constexpr MPI_Fint last_constant = 2;  // MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL of its mpif.h
  return comm > last_constant && !is_initialized();
#else
  return is_of_session(MPI_Comm_f2c(comm));
#endif
}
#else
bool is_of_session(MPI_Comm) {
  return false;
}

bool is_of_session_f(MPI_Fint) {
  return false;
}
#endif

ProcessNumber process_number() {
#ifdef SAR_MPI_SESSIONS
  if (!is_initialized()) {
    static const ProcessNumber of_set = number_in_process_set();
    return of_set;
  }
#endif
  ProcessNumber number;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &number.process), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &number.processes), "MPI_Comm_size");
  return number;
}

}}  // namespace sar
