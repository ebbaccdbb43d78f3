// SPDX-License-Identifier: MIT
#include <sar/comm/mpi_objects.hpp>
#include <sar/core/error.hpp>

#include <sys/types.h>

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

namespace sar { inline namespace SAR_PRECISION {

namespace {

#ifdef OPEN_MPI
constexpr bool built_with_open_mpi = true;
#else
constexpr bool built_with_open_mpi = false;
#endif

/// Returns name and version of the MPI whose functions the process calls, as "MPICH Version: 4.0.2".
std::string running_mpi() {
  char text[std::max(MPI_MAX_LIBRARY_VERSION_STRING, 16384)] = "";  // another MPI may have a longer text
  int length = 0;
  check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  std::string name(std::string_view(text).substr(0, std::string_view(text).find_first_of(",\n")));
  std::ranges::replace(name, '\t', ' ');
  return name;
}

/// Returns whether this is the MPI of the build, or one that is not known.
bool is_mpi_of_build(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return built_with_open_mpi ? !has("MPICH") && !has("MVAPICH") && !has("Intel") : !has("Open MPI");
}

std::atomic<pid_t> process_of_mpi = 0;  // the first to pass require_running_mpi()

}  // namespace

void require_mpi_of_build() {
  static const std::string running = running_mpi();
  require<CommunicationError>(is_mpi_of_build(running), "sar was built with ", SAR_MPI,
                              ", and this process runs ", running,
                              ": compile, link and start the program with the MPI of the library");
}

bool is_fork() noexcept {
  const pid_t used_by = process_of_mpi;
  return used_by != 0 && used_by != ::getpid();
}

bool mpi_runs() noexcept {
  int finalized = 0;
  return !is_fork() && MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0;
}

void require_running_mpi(const char* what, bool of_session) {
  require_mpi_of_build();
  require<CommunicationError>(!is_fork(), what, " is used in a fork of the process that uses MPI, expected ",
                              "that process, or a program that is started by itself");
  int initialized = 1;
  int finalized = 0;
  if (!of_session) check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  require<CommunicationError>(
      initialized != 0 && finalized == 0, what, " needs MPI, which is ",
      finalized != 0 ? "finalized already"
                     : "not initialized: call MPI_Init_thread or create a sar::Environment first, "
                       "or pass a communicator of an MPI session");
  process_of_mpi = ::getpid();
}

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
