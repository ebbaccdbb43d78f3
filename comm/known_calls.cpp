#include <sar/comm/known_calls.hpp>

namespace sar::inline SAR_PRECISION {
namespace {

thread_local MPI_Comm known_on = MPI_COMM_NULL;

}  // namespace

KnownCalls::KnownCalls(MPI_Comm comm, bool known) : outer_(known_on) {
  if (known) known_on = comm;
}
KnownCalls::~KnownCalls() {
  known_on = outer_;
}

bool KnownCalls::of(MPI_Comm comm) noexcept {
  return known_on == comm;
}

}  // namespace sar
