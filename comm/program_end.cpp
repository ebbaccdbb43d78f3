#include <sar/comm/mpi_error.hpp>
#include <sar/comm/program_end.hpp>
#include <sar/comm/status.hpp>

#include <exception>

namespace sar::inline SAR_PRECISION {
namespace {

bool kept_one = false;
MPI_Comm kept = MPI_COMM_NULL;

/// MPI_Finalize calls this before it does anything else (MPI 3.1, section 8.7.1). A rank stays as long as
/// others make calls: those throw, and come here in the end or end the program with an error.
int agree_at_finalize(MPI_Comm, int, void*, void*) {
  try {
    while (exchange_status(kept, {}, 0, {.name = "the program", .ends = true}).failed) {
    }
  } catch (const std::exception&) {
    // MPI has failed: nobody can be told.
  }
  MPI_Comm_free(&kept);
  return MPI_SUCCESS;
}

}  // namespace

bool keep_until_finalize(MPI_Comm comm) {
  int size = 0;
  int processes = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &processes), "MPI_Comm_size");
  if (kept_one || size != processes || size == 1) return false;
  int key = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, agree_at_finalize, &key, nullptr),
            "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
  check_mpi(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
  kept = comm;
  kept_one = true;
  return true;
}

}  // namespace sar
